// traced_block.h: one block of a traced kernel, or the blocks of a cluster, which run together.
//
// Every thread is a fibre. The scheduler lets the lanes of a warp run, one after another in an order drawn from the
// seed, until each has stopped; then it plays their records back in step. Only one warp has records at a time.
#pragma once

#include "threads/mbarrier.h"
#include "trace/races.h"

namespace simt {
namespace trace {

constexpr unsigned kMaxBarriers = 64;  // of a block, that tiles can be loaded for

class TracedBlock {
 public:
  TracedBlock(const Job& job, Session& session, LaunchInfo& info);

  bool run(uint3 index, uint64_t number);  // false: with a fault, which `fault` describes
  FaultRecord fault;
  uint64_t budget;        // steps that a block may take
  bool hopeless = false;  // the fault is one that other blocks would only take long to repeat

  // The device side, on the fibre of the thread that calls.
  int barrier(Vote vote, int predicate, const void* site);
  uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site);
  unsigned active(const void* site);
  void cluster_barrier(const void* site) { clocks_ = true, wait(FibreThread::Waiting::cluster, site); }
  void warp_group_barrier(const void* site);
  unsigned cluster_rank() const { return rank_of(me()); }
  void stop() { switch_context(running_->context, worker_.scheduler); }
  void* shared_static(const SharedSite* site, size_t bytes, size_t alignment);
  [[noreturn]] void fail(const char* kind, Place place, const std::string& message);

  // mbarriers and units.
  void take_turn(const void* site) { clocks_ = true, wait(FibreThread::Waiting::turn, site); }
  void mbarrier_init(void* barrier);
  void mbarrier_arrive(void* barrier, int bytes);
  bool mbarrier_passes(void* barrier, unsigned parity);  // then it has been waited for
  void wait_for_phase(void* barrier, unsigned parity, const void* site);
  void async_piece(Piece piece) { clocks_ = true, apart_[me()].asked.pieces.push_back(piece); }
  void async_zeros(size_t bytes) { apart_[me()].asked.zeros.push_back(bytes); }
  void async_load(void* barrier, int bytes, Copy copy);
  void async_store();
  void async_product();
  void async_commit(Unit unit);
  void async_wait(Unit unit, unsigned pending);
  void async_fence();

 private:
  struct Asked {  // what a thread has asked of units and not yet waited for
    struct Read {
      Piece piece;
      uint64_t pc;
      unsigned group;
    };
    std::vector<Piece> pieces;           // of what it is about to ask for
    std::vector<uint64_t> zeros;         // bytes of them, row by row
    uint64_t sectors = 0;                // of the tile that it last asked for
    std::vector<Read> reads;             // of products
    unsigned products = 0;               // groups of them that are closed
    std::vector<uint32_t> stores;        // the store unit's clock when a group of stores was closed
    uint32_t store_clock = 0, read = 0;  // of the store unit: now; up to where its reads are known to be done
    uint64_t store_pc = 0;
  };
  struct BarrierKnowledge {  // of an mbarrier
    Clocks arriving, released;
    uint32_t init_clock = 0;  // of the thread that initialised it
    unsigned init_slot = 0;
    uint32_t unit_clock = 0;
    unsigned unit_slot = 0, asked_by = 0;  // the slot of the unit that loads for it; the thread that asked it last
  };
  struct Thread {      // what is known of a thread besides what FibreThread holds
    const void* site;  // where it waits
    uint64_t last_pc;  // of its last event that was played
    unsigned depth;
    bool fenced;
    uint32_t clock, at_barrier;  // now; when it passed the block's last barrier
    Clock warp_knows;
    Knowledge knows;
  };
  struct Apart {  // the same of the few kernels in which `clocks_` is set
    Clocks clocks;
    Asked asked;
    const MBarrier* barrier = nullptr;  // whose phase it waits for
    unsigned parity = 0;
  };
  struct BlockState {  // what is known of a block besides what Block holds
    Knowledge knows;
    uint32_t epoch = 0;  // barriers passed
  };

  void begin(uint3 index, uint64_t number);
  static void fibre_main();
  void resume(unsigned i);
  void run_warp(unsigned w);
  void play(unsigned w);
  static constexpr uint64_t kNoKey = ~uint64_t{0};
  uint64_t next_key(const uint64_t* head, unsigned n) const;
  void step(unsigned w, const Request& request);
  void check_written(unsigned i, const Event& event);
  void check_race(unsigned i, const Event& event) { check_race(who(i), i, event); }
  void check_race(const Who& who, unsigned i, const Event& event);
  Who who(unsigned i);
  Counts& counts(const Event& event);

  void wait(FibreThread::Waiting why, const void* site);
  void complete(unsigned w, unsigned mask, Collective what);
  void turn_over(unsigned w);
  bool release_barriers();
  void release_barrier(unsigned rank);
  void open(unsigned first, unsigned count);
  bool release_phases();
  bool resolve_active();
  void deadlock();
  std::string describe_deadlock() const;
  void add_shared(size_t offset, size_t bytes, const std::string& name);

  Clocks everything(unsigned i) const;
  void share(unsigned first, unsigned count, unsigned lanes);
  Who asynchronous(unsigned i, const Clocks& clocks);
  Who unit(unsigned slot, uint32_t clock, const Clocks& clocks);
  void touch(const Who& who, unsigned i, const Piece& piece, uint64_t pc);
  void touch_barrier(const Who& who, const void* barrier, Kind kind);
  void advance(MBarrier& barrier, unsigned arrivals, int bytes);
  void count_tile(Kind kind, Copy copy);
  void check_exit(unsigned i);

  void record_failure(unsigned i, const char* kind, Place place, const std::string& message);
  Finding* place(const char* kind, uint64_t pc, uint64_t other_pc, unsigned i);
  const unsigned* shuffled(unsigned n, unsigned* order);
  bool ready(unsigned i) const { return !threads_[i].exited && threads_[i].waiting == FibreThread::Waiting::no; }
  unsigned me() const { return static_cast<unsigned>(running_ - threads_.data()); }
  unsigned rank_of(unsigned i) const { return i / block_threads_; }
  // The number in the grid of a block, of the cluster whose first block has number `first`.
  uint64_t number_of(uint64_t first, unsigned rank) const;
  unsigned asked_by(const Access& access) const;
  uint3 index_of_block(unsigned rank) const { return worker_.blocks[rank].geometry.block_index; }
  // A thread's slot; its store unit's is unit_slots_ further. The units of mbarriers have those behind.
  unsigned slot_of(unsigned i) const { return (rank_of(i) << slot_shift_) + i % block_threads_; }
  unsigned lanes_of(unsigned w) const {
    return count_ - w * kWarpSize < kWarpSize ? count_ - w * kWarpSize : kWarpSize;
  }

  const Job& job_;
  Session& session_;
  LaunchInfo& info_;
  Worker& worker_;
  Races races_;
  const std::string kernel_;
  std::vector<FibreThread> threads_ = std::vector<FibreThread>(kMaxThreads);
  std::vector<Thread> known_ = std::vector<Thread>(kMaxThreads);
  std::vector<Apart> apart_ = std::vector<Apart>(kMaxThreads);
  Warp warps_[kMaxThreads / kWarpSize];
  Lane lanes_[kWarpSize];
  BlockState blocks_[kMaxClusterBlocks];
  std::unordered_map<uint64_t, Counts*> counts_;  // by the event's key

  FibreThread* running_ = nullptr;
  unsigned count_ = 0, alive_ = 0, block_threads_ = 1;  // the first two of all blocks
  uint64_t number_ = 0, steps_left_ = 0;                // number_: of the first block
  bool clocks_ = false;  // threads may know of each other more than barriers of block and warp say
  unsigned slot_shift_ = 0, unit_slots_ = 0;
  std::unordered_map<const void*, BarrierKnowledge> barriers_;
  unsigned units_[kMaxClusterBlocks] = {};  // mbarriers that have a unit, by rank
  bool failed_ = false, asked_ = false;
  unsigned failed_thread_ = 0;

  std::vector<std::pair<const SharedSite*, size_t>> shared_sites_;
  std::vector<uint64_t> shared_regions_;
  size_t shared_used_ = 0, shared_declared_ = 0;
};

inline uint3 index_in(uint64_t linear, dim3 of) {
  return {static_cast<unsigned>(linear % of.x), static_cast<unsigned>(linear / of.x % of.y),
          static_cast<unsigned>(linear / (uint64_t{of.x} * of.y))};
}
inline uint64_t pc_of(const void* site) { return reinterpret_cast<uint64_t>(site) - 1; }
extern __thread TracedBlock* this_block SIMT_TLS;  // that runs on this thread, or null

// A thread's turn to do what its accesses before it must have been played for. It is silent.
class Turn {
 public:
  explicit Turn(const void* site) {
    this_block->take_turn(site);
    silence_.begin();
  }

 private:
  Silence silence_;
};

}  // namespace trace
}  // namespace simt
