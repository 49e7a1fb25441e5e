// block.h: a worker (an operating-system thread) and the block of CUDA threads, or the cluster of blocks, that it runs.
//
// The threads of a cluster are scheduled like the threads of one block, but each block has its own indices, shared
// memory and barrier.
//
// The blocks of a cooperative grid wait for each other at the grid's barrier (cooperative.h).
//
// One thread runs at a time, until it exits or waits at a barrier or in a warp collective. Until a thread waits, all
// threads share one fibre, one after another. A thread that waits keeps that fibre, and the next thread starts on a
// fresh one. So a kernel without barriers costs no switches.
//
// While no thread waits, the threads of a block form a range (core.h): the kernel's own code goes from one to the next, in
// the FibreThread of the first, and nothing is noted for each. leave_range makes up for it when a thread has to wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../include/simt/core.h"
#include "threads/fibre.h"
#include "threads/tensor_memory.h"

namespace simt {

constexpr unsigned kMaxThreads = 1024;         // of a block
constexpr unsigned kMaxClusterThreads = 2048;  // that the simulator runs together: 8 blocks of 2 warp groups
constexpr size_t kStaticSharedLimit = 48 * 1024;
constexpr size_t kSharedLimit = 227 * 1024;  // opt-in maximum of compute capability 9.0, and of 10.0
constexpr unsigned kWarpGroup = 128;         // threads that execute a wgmma together
inline std::string no_warp_group(unsigned block_threads) {
  return "wgmma in the last " + std::to_string(block_threads % kWarpGroup) + " threads of a block of " +
         std::to_string(block_threads) + ": a warp group has 128 threads";
}
constexpr unsigned kNamedBarriers = 16;         // of a block, in inline PTX
constexpr unsigned kPortableClusterBlocks = 8;  // every GPU with clusters allows them
constexpr unsigned kMaxClusterBlocks = 16;      // with cudaFuncAttributeNonPortableClusterSizeAllowed
constexpr size_t kSharedBytes = kMaxClusterBlocks * kSharedLimit;

struct Block;

struct FibreThread {
  Thread self;
  Block* block;  // in fast mode
  Context context;
  FibreThread* next;  // in the queue of ready threads, or of threads waiting at a barrier
  unsigned stack;
  enum class Waiting : uint8_t {
    no,
    barrier,
    collective,
    active,
    cluster,  // the last five in traced mode only
    warp_group,
    named,
    phase,  // of an mbarrier
    turn,   // until its recorded events have been replayed
  } waiting;
  bool exited;
  unsigned arrived;  // in which phase, plus one, it has arrived at the cluster's barrier without waiting yet; or 0
  Collective what;   // the collective that it waits in, its mask, operand, value and answer
  unsigned mask, operand;
  uint64_t value, answer;
};

struct Warp {
  unsigned alive;    // lanes that have not exited
  unsigned waiting;  // lanes that wait in a collective
};

struct Queue {  // of threads, linked by `next`
  FibreThread *head = nullptr, *tail = nullptr;
  void append(FibreThread* first, FibreThread* last) {
    (tail ? tail->next : head) = first;
    tail = last;
  }
};

struct BarrierQueue : Queue {      // the threads waiting at a barrier
  unsigned count = 0, trues = 0;   // threads that have arrived; those whose predicate holds
  unsigned total = 0, answer = 0;  // the same two when it last opened
  unsigned phase = 0;              // how often it has opened

  void open() { *this = {{}, 0, 0, count, trues, phase + 1}; }
  int answer_to(Vote vote) const { return simt::answer_to(vote, answer, total); }
};

struct Block {  // of the cluster
  Geometry geometry{};
  unsigned alive = 0;  // threads that have not exited
  BarrierQueue barrier, named[kNamedBarriers];
};

// If all living lanes of the mask wait in this collective: stores their answers, removes them from `waiting` and
// returns them; else returns 0. `warp` points to the thread of lane 0.
unsigned answer_collective(FibreThread* warp, Warp& state, unsigned mask, Collective what);
// Answers the lanes of a warp of `count` threads that wait in __activemask, and returns these lanes. Fibres never run
// together, so lanes that wait at the same call when no other thread can go on count as one convergent group.
unsigned answer_active(FibreThread* warp, unsigned count);
const char* name_of(Collective what);

class Children;
struct Parked;

struct Job {  // what a launch hands to each worker
  const Site* site = nullptr;
  Config config{1, 1};
  void (*run)(void*, Range&) = nullptr;
  void* closure = nullptr;
  Children* children = nullptr;  // where the kernels that this one launches wait for its end
};

inline uint3 index_in(uint64_t linear, dim3 of) {
  return {static_cast<unsigned>(linear % of.x), static_cast<unsigned>(linear / of.x % of.y),
          static_cast<unsigned>(linear / (uint64_t{of.x} * of.y))};
}
// The index of the first block of a cluster of the grid.
inline uint3 first_block(const Job& job, uint64_t cluster) {
  const dim3 grid = job.config.grid, size = job.site->cluster;
  const uint3 at = index_in(cluster, dim3(grid.x / size.x, grid.y / size.y, grid.z / size.z));
  return {at.x * size.x, at.y * size.y, at.z * size.z};
}

struct FaultRecord {
  std::string kind, message;
};
constexpr const char* kWithoutClusters = "without clusters";  // of a launch that is to be made again; message: "2 1 1"

// Runs a kernel's code. The fault or exception that ends it is returned, to be raised outside the handler: jumping out
// of a handler would leak its exception. `kind` is empty if there was none.
template <typename Body>
FaultRecord caught(Body body) {
  try {
    body();
    return {};
  } catch (const Fault& error) {
    return {error.kind, error.message};
  } catch (const std::exception& error) {
    return {"exception", std::string("an exception was thrown in the kernel: ") + error.what()};
  } catch (...) {
    return {"exception", "an exception was thrown in the kernel"};
  }
}

class Worker {
 public:
  ~Worker();
  static Worker& current();  // of this operating-system thread; created on first use

  void enter_fibre(bool entered) {  // seen by a signal's handler, on this thread
    in_fibre.store(entered, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // Runs the cluster whose first block has this index, until its threads have exited or all the others wait at the
  // grid's barrier. false: it ended with a fault, described in `fault`.
  bool run_cluster(const Job& job, uint3 first);
  bool at_grid_barrier() const { return grid_barrier_.count != 0; }
  void park(Parked& to);  // saves a cluster that waits at the grid's barrier (cooperative.cpp)
  void unpark(const Parked& from);
  bool continue_cluster();                          // the same as run_cluster, after the grid's barrier
  void begin_job(const Job& job);                   // forgets the last launch's shared declarations
  void begin_cluster(const Job& job, uint3 first);  // sets its blocks' indices and clears the fault
  [[noreturn]] void abandon(FaultRecord record);    // ends the block; its fibres never resume
  [[noreturn]] void abandon_in_handler(const char* kind, const void* address);  // the same; allocates nothing

  // The device side, called on a fibre.
  int barrier(Vote vote, int predicate);
  void cluster_arrive();
  void cluster_barrier();
  void warp_group_barrier();
  int named_barrier(unsigned id, unsigned threads, Vote vote, int predicate);
  void named_arrive(unsigned id, unsigned threads);
  void grid_barrier();
  unsigned cluster_rank() const { return static_cast<unsigned>(running->block - blocks); }
  uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand);
  unsigned active(const void* site);
  void yield();
  [[noreturn]] void exit_running();
  void* shared_static(const SharedSite* site, size_t bytes, size_t alignment);

  Stacks stacks{kMaxClusterThreads};
  char* shared_of(unsigned rank) const { return shared + rank * kSharedLimit; }
  GuardedMemory shared_memory{kSharedBytes};
  char* shared =
      shared_memory
          .start();  // an arena for each block of the cluster: dynamic part first, static declarations after it
  unsigned cluster_blocks = 1;
  std::unique_ptr<TensorMemory[]> tensor_memory;    // of each block of the cluster; null until one has used it
  std::atomic<bool> in_fibre{false};                // the worker runs kernel code: a signal is the kernel's
  std::atomic<uint64_t> blocks_started{0};          // for the watchdog
  std::atomic<const char*> end_requested{nullptr};  // set by the watchdog: why the block has to end
  FaultRecord fault;
  const char* signal_kind = nullptr;
  const void* signal_address = nullptr;
  const Job* job = nullptr;
  FibreThread* running = nullptr;
  Block blocks[kMaxClusterBlocks];
  Context scheduler;  // resumed when a block ends or faults

 private:
  bool run_fibres();  // lets threads run until none can
  static void fibre_main();
  void run_threads();               // body of a fibre: runs threads that have not started, one after another
  void start_fibre(Context& from);  // switches to a fresh fibre, for the next thread that has not started
  Range start(FibreThread& thread);
  void leave_range() {  // the running thread is about to wait
    if (range_) end_range();
  }
  void end_range();                                  // gives it a FibreThread of its own
  void exit_range(unsigned first, unsigned behind);  // threads [first, behind) have exited, and no thread waits
  unsigned place_of(const FibreThread& t) const {    // of the thread that t.self names
    return static_cast<unsigned>(t.block - blocks) * block_threads_ + t.self.linear;
  }
  unsigned take_stack();
  void exit_thread(FibreThread& thread);
  [[noreturn]] void retire();  // this fibre has nothing left to do
  void suspend() {             // the running thread waits while another one runs
    FibreThread& me = *running;
    if (FibreThread* next = take_ready()) {
      if (next != &me) switch_context(me.context, next->context);
    } else {
      run_next(me.context);
    }
    running = &me;  // resumed
    current_thread = &me.self;
  }
  FibreThread* take_ready() {
    FibreThread* const first = ready_.head;
    if (first && !(ready_.head = first->next)) ready_.tail = nullptr;
    return first;
  }
  void run_next(Context& from);
  void make_ready(FibreThread& thread);
  void wait_at(BarrierQueue& barrier, int predicate, unsigned expected);
  void release(BarrierQueue& barrier);
  bool complete_collective(unsigned warp, unsigned mask, Collective what);
  void recheck_collectives(unsigned warp);
  bool resolve_active();
  std::string describe_deadlock();
  unsigned index_of(const FibreThread& t) const { return static_cast<unsigned>(&t - threads_.get()); }
  unsigned warp_of(const FibreThread& t) const { return index_of(t) / kWarpSize; }

  std::unique_ptr<FibreThread[]> threads_{new FibreThread[kMaxClusterThreads]};
  Warp warps_[kMaxClusterThreads / kWarpSize];
  unsigned count_ = 0, started_ = 0, alive_ = 0, block_threads_ = 1;  // the first three count all blocks
  std::vector<unsigned> free_stacks_;  // of those that this cluster has taken, which are the first fresh_stack_
  unsigned fresh_stack_ = 0;
  Range* range_ = nullptr;  // of the running fibre, until a thread of it waits
  Queue ready_;
  BarrierQueue cluster_barrier_, grid_barrier_, warp_groups_[kMaxClusterThreads / kWarpGroup];
  unsigned active_count_ = 0;

  std::vector<std::pair<const SharedSite*, size_t>> shared_sites_;  // with their offsets
  size_t shared_used_ = 0, shared_dynamic_ = 0;
};

// Inline: a frame less on each of the stacks, which the processor's cache has to hold while all threads wait.
__attribute__((always_inline)) inline void Worker::wait_at(BarrierQueue& barrier, int predicate, unsigned expected) {
  FibreThread& me = *running;
  barrier.trues += predicate != 0;
  me.waiting = FibreThread::Waiting::barrier;
  me.next = nullptr;
  barrier.append(&me, &me);
  if (++barrier.count == expected) release(barrier);
  suspend();
}

extern __thread Worker* current_worker SIMT_TLS;  // null on a thread that has not run a block

std::string describe_signal(const Worker& worker);
std::string where(const Worker& worker);  // "kernel 'add', block (0, 0, 0), thread (5, 0, 0), launched at f.cu:12"

}  // namespace simt
