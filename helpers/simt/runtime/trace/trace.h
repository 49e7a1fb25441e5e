// trace.h: the traced mode, which sees every access that a kernel makes to memory.
//
// A traced kernel is compiled with -fsanitize=thread -fsanitize-coverage=trace-pc. The hooks that the compiler calls
// (hooks.cpp) check each address at once, before the access happens, and append it to the lane's record. When
// the lanes of a warp have all stopped (at a barrier, at the end, or with a full record), scheduler.cpp plays their
// records back in step, as a warp would have executed them: of all lanes, those go on that are deepest in calls and
// have the lowest program counter. Lanes that do the same thing in one step make one request, which is counted
// (metrics.cpp) and checked for races (races.cpp) and uninitialised reads.
//
// Because the verdict on a race compares what the kernel ordered, not what happened first, it does not depend on the
// order in which lanes and warps take their turns. That order is drawn from a seed all the same. A lane that does
// something wrong stops there; the others go on to their next barrier, so that of several wrong threads the first one
// in the grid is named, whatever the order was.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../../include/simt/async.h"
#include "threads/block.h"

namespace simt {
namespace trace {

enum class Kind : uint8_t {
  load,
  store,
  atomic,
  step,       // a basic block, for keeping lanes together
  tile_load,  // by a unit
  tile_store,
};

struct Region;

struct Event {
  uint64_t key;      // smaller comes first in a warp: deeper in calls, then lower program counter, then kind and size
  uint64_t address;  // virtual, as the region places it
  Region* region;
  uint16_t poison;  // bit i: byte i of fresh memory still holds what it was filled with
  uint8_t size;
  Kind kind;
  bool quiet;   // an atomic load or store that is part of another operation: not counted
  bool fenced;  // the lane has fenced since its last plain store

  static uint64_t make_key(uint32_t depth, uint64_t pc, Kind kind, unsigned size) {
    return uint64_t{depth < 255 ? 255 - depth : 0} << 56 | (pc & kPcMask) << 8 | unsigned(kind) << 5 | size;
  }
  uint64_t pc() const { return key >> 8 & kPcMask; }
  static constexpr uint64_t kPcMask = (uint64_t{1} << 48) - 1;
};

constexpr size_t kRecordLength = 512;  // events that a lane may be ahead of its warp

struct Lane {  // a lane of the warp that has its turn
  std::unique_ptr<Event[]> record{new Event[kRecordLength]};
  uint32_t length = 0, position = 0;
  uint32_t depth = 0;  // of calls
  bool fenced = false;
  uint64_t unknown = 0;  // an address that the launching thread shall ask Python about
  uint64_t stack = 0;    // where its fibre's stack begins
  class Regions* regions = nullptr;
};

// ---------------------------------------------------------------------------------------------------------------
// Regions: what an address belongs to.

enum class Space : uint8_t { global, shared, other };  // other: parameters and constants, which are not counted

struct Region {
  uint64_t start, end;     // [start, end)
  uint64_t virtual_start;  // as a GPU's allocator would have placed it; of shared memory: the offset
  Space space;
  bool fresh;  // reading it before writing is a fault
  uint16_t
      poison;  // what fresh memory was filled with by those who may also write to it unseen; 0: all writes are seen
  std::string name;
  std::vector<uint64_t> written;  // a bit for each byte, if fresh

  // Which of the bytes at `offset` kernels have written; marks them as written.
  uint16_t written_before(uint64_t offset, unsigned size, bool mark);
};

// Virtual addresses below are of shared memory, that of each block of a cluster.
constexpr uint64_t kGlobalStart = 1 << 21;
static_assert(kMaxClusterBlocks * kSharedLimit < kGlobalStart, "global memory begins behind all shared memory");

class Regions {
 public:
  // `into` is how far into its allocation the region begins: a view starts inside a storage that is 512-byte aligned.
  void add(uint64_t start, uint64_t bytes, Space space, uint16_t poison, bool fresh, std::string name, uint64_t into);
  void remove(uint64_t start);
  void remove_ordinary();                  // all of global memory but what is fresh
  Region* find(uint64_t address);          // the one that holds the address, or null
  std::string describe(uint64_t address);  // where an address outside all regions lies

  // The region of the last access at this program counter, which is most likely the one of the next.
  Region*& recent(uint64_t pc) { return recent_[pc * 0x9e3779b97f4a7c15u >> (64 - kRecentBits)]; }

 private:
  static constexpr unsigned kRecentBits = 8, kRecent = 1 << kRecentBits;
  std::mutex mutex_;                // tensors may be made and freed by other threads while no kernel runs
  std::map<uint64_t, Region> map_;  // by start
  Region* recent_[kRecent] = {};
  uint64_t next_virtual_ = kGlobalStart;
};

// ---------------------------------------------------------------------------------------------------------------
// Findings

struct Counts {  // for one program counter and kind
  Space space = Space::other;
  uint64_t requests = 0, sectors = 0, ideal_sectors = 0, wavefronts = 0, ideal_wavefronts = 0, lanes = 0;
  uint64_t received = 0;  // of tiles: sectors, once for each block that gets them
  uint32_t size = 0;
  std::vector<std::pair<unsigned, uint64_t>> picture;  // of the fullest request: lane and virtual address
};

struct Finding {
  std::string kind, kernel, message;
  uint64_t pc = 0, other_pc = 0;  // other_pc: of a race or divergent barrier, the other place
  uint64_t position = 0;          // of the thread in the grid
  unsigned rank = 0;              // of several in one line, that of the lowest rank is told
  uint3 block{}, thread{};
  std::string file;  // where the compiler says it itself; else the program counters tell
  unsigned line = 0;
};

struct LaunchInfo {
  std::string kernel, file;
  int line = 0;
  dim3 grid{1}, block{1};
  uint64_t blocks = 0, traced_blocks = 0;
  uint64_t steps = 0, lane_steps = 0;  // for the mean of active lanes
  size_t shared_static = 0, shared_dynamic = 0;
};

class Session {  // between trace_begin and trace_end
 public:
  static Session* active();
  uint64_t seed = 0, max_blocks = 64, budget = 100'000'000;
  bool (*ask)(uint64_t address) = nullptr;  // Python: looks for tensors that it has not told of; true if it found some
  Regions regions;
  std::vector<uint64_t> borrowed;  // regions of cudaMalloc, which may be freed and be others after the launch
  std::map<std::tuple<std::string, uint64_t, Kind>, Counts> counts;  // by kernel, program counter and kind
  std::vector<Finding> findings;
  std::vector<LaunchInfo> launches;
  uint64_t random();

  // Where a finding shall be written: one for each kind and place, from the first thread in the grid that has it.
  // Null if an earlier thread has it already.
  Finding* place(const char* kind, const std::string& kernel, uint64_t pc, uint64_t other_pc, uint64_t position);
};

struct Request {  // what the lanes of a warp ask for together; events of one key
  const Event* events[kWarpSize];
  unsigned lanes[kWarpSize];
  unsigned count = 0;
};
void count(Counts& counts, const Request& request);
// Sectors that come for one row of a tile: for what is in memory, and for zeros in place of what is outside the matrix.
uint64_t sectors_of_row(uint64_t address, uint64_t bytes, bool for_several);
uint64_t sectors_of_zeros(uint64_t bytes, bool for_several);
constexpr unsigned kSectorBytes = 32;

// ---------------------------------------------------------------------------------------------------------------
// What the rest of the run-time library calls

bool launch(const Job& job, FaultRecord& fault);  // runs the grid on the calling thread; false after a fault

extern __thread Lane* current_lane SIMT_TLS;  // null unless the thread runs traced device code

// While it lives, hooks do nothing and the watchdog waits. What the tracer itself calls may be code that an
// instrumented library defines too (a template of the standard library), of which the loader keeps one; and it must not
// be left in the middle, with a lock in its hand.
class Silence {
 public:
  Silence() : lane_(current_lane), worker_(in_kernel() ? current_worker : nullptr) { begin(); }
  ~Silence() {
    current_lane = lane_;
    if (worker_) worker_->in_fibre.store(true);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  void begin() {  // again, after the lane has had another turn
    current_lane = nullptr;
    if (worker_) worker_->in_fibre.store(false);
  }

 private:
  Lane* lane_;
  Worker* worker_;
};

// The device side in a traced block; core.h's functions come here if `in_traced_block()`.
bool in_traced_block();
int barrier(Vote vote, int predicate, const void* site);
uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site);
unsigned active(const void* site);
void yield();
void* shared_static(const SharedSite* site, size_t bytes, size_t alignment);
void cluster_barrier(const void* site);
void warp_group_barrier(const void* site);
unsigned cluster_rank();

// The same for async.h (mbarriers.cpp, units.cpp).
struct Piece {  // of memory, that a unit reads or writes
  uint64_t address;
  size_t bytes;
  bool write;
};
void mbarrier_init(void* barrier, const void* site);  // the caller writes the state
void mbarrier_arrive(void* barrier, int bytes, const void* site);
void mbarrier_wait(void* barrier, unsigned parity, const void* site);
void async_piece(Piece piece);
void async_zeros(size_t bytes);
void async_load(void* barrier, int bytes, Copy copy, const void* site);
void async_store(const void* site);
void async_product(const void* site);
void async_commit(Unit unit);
void async_wait(Unit unit, unsigned pending, const void* site);
void async_fence(const void* site);

// What the hooks check (checks.cpp).
// The region of an access; ends the lane if there is none, if it ends before, or if the address is misaligned.
Region* checked_region(Lane& lane, uint64_t address, unsigned size, Kind kind, uint64_t pc);
// Which of the bytes, of fresh memory, hold what it was filled with.
uint16_t poisoned(const Region& region, uint64_t address, unsigned size);
// An index that the compiler found to be outside its array; `what` is its description (-fsanitize=bounds).
void index_out_of_bounds(const void* what, uint64_t index, const void* site);

// For the hooks: let the scheduler read the record; end the lane with a fault.
void stop_lane();
struct Place {  // a program counter, or a line
  uint64_t pc;
  const char* file = nullptr;
  unsigned line = 0;
};
[[noreturn]] void lane_fault(const char* kind, Place place, const std::string& message);

}  // namespace trace
}  // namespace simt
