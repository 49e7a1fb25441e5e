// cluster.h: the threads of the blocks that run together (a block, or the blocks of a cluster), and how their run ends.
//
// Every thread is a fibre on its own stack, and one of them runs at a time. Threads are numbered through the cluster,
// block after block; a block's number in its cluster is its rank. Other classes of the tracer share this state: the
// scheduler resumes the threads, the barriers suspend and release them.
//
// A finding (a race, an uninitialised read) does not stop the kernel. A failure (an access out of bounds, a deadlock)
// ends its thread; the other threads go on to their next stop. So of several failing threads the first one in the
// cluster is reported, whatever the schedule was.
//
// Deviation from CUDA: warps are counted through the cluster, so in a cluster of several blocks a block has to have a
// multiple of 32 threads for its warps to be its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trace/checks.h"
#include "trace/session.h"

namespace simt::trace {

// What a launch calls its kernel, and which code it is if the name may stand for several (session.h).
std::string name_of(const Job& job);

class Cluster {
 public:
  Cluster(const Job& job, Session& session);
  // The first block's index, and its number in the grid; `entry` runs on each thread's fibre.
  void begin(uint3 index, uint64_t number, void (*entry)());

  // Grants the cluster further steps, if its budget or the session's time has some left.
  bool go_on();

  // Suspends the running thread; `site` is the return address of its call.
  void suspend();
  void pause();  // the same, for a thread that waits for memory to change
  void suspend(FibreThread::Waiting why, const void* site);
  unsigned running() const { return static_cast<unsigned>(worker.running - threads.data()); }
  uint64_t pc(unsigned i) const { return pc_of(state[i].site); }  // of the call in which thread i waits or last waited

  bool waits(unsigned i, FibreThread::Waiting why) const { return !threads[i].exited && threads[i].waiting == why; }
  bool ready(unsigned i) const { return waits(i, FibreThread::Waiting::no); }
  void release(unsigned i) { threads[i].waiting = FibreThread::Waiting::no; }

  unsigned warps() const { return (count + kWarpSize - 1) / kWarpSize; }
  unsigned lanes_of(unsigned warp) const {
    return count - warp * kWarpSize < kWarpSize ? count - warp * kWarpSize : kWarpSize;
  }
  Lane& lane(unsigned i) { return lanes[i % kWarpSize]; }  // of a thread of the warp that is running
  unsigned rank_of(unsigned i) const { return i / block_threads; }
  unsigned running_rank() const { return rank_of(running()); }
  unsigned index_of(unsigned i) const { return i % block_threads; }  // in its block
  // The number in the grid of a block of the cluster whose first block has number `first`.
  uint64_t number_of(uint64_t first, unsigned rank) const;
  // A frame of the film, of thread i's warp; only if `filmed`.
  Frame frame_of(unsigned i, Frame::What what, uint64_t pc, uint32_t mask) const;

  // The finding to fill in for thread i at this place, or null if an earlier thread of the grid has one there.
  Finding* place(const char* kind, uint64_t pc, uint64_t other_pc, unsigned i, bool remark = false);
  // The same for any thread of the grid; leaves block and thread to the caller.
  Finding* place_at(const char* kind, uint64_t pc, uint64_t other_pc, uint64_t block, unsigned thread, bool remark);

  // Thread i has failed.
  void record_failure(unsigned i, const char* kind, Place place, const std::string& message);
  // The running thread has failed; called on its fibre.
  [[noreturn]] void fail(const char* kind, Place place, const std::string& message);

  struct State {  // what the tracer keeps of a thread besides what FibreThread holds
    const void* site = nullptr;
    uint64_t last_pc = 0;  // of the last event in its record
    uint32_t depth = 0;    // of calls
    Scope scope = Scope::device;
    bool spinning = false;  // it only waits for memory to change
  };

  const Job& job;
  Session& session;
  Worker& worker;
  const std::string kernel;
  unsigned count = 0, alive = 0, block_threads = 1;  // the first two of all blocks
  uint64_t number = 0;                               // of the first block
  std::vector<FibreThread> threads = std::vector<FibreThread>(kMaxClusterThreads);
  std::vector<State> state = std::vector<State>(kMaxClusterThreads);
  Warp warp_state[kMaxClusterThreads / kWarpSize];
  Lane lanes[kWarpSize];  // the records of the warp that is running

  uint64_t budget;          // steps that are traced in any case
  uint64_t granted = 0;     // steps so far: the watchdog counts anew from each grant
  uint64_t steps_left = 0;  // of those granted
  bool fences = false;      // the kernel has executed a fence
  bool filmed = false;      // a film of one of its blocks was asked for (film.h)
  bool unwatched = false;   // it has used up its budget, and goes on without being traced
  bool failed = false;
  bool hopeless = false;  // further clusters would repeat the failure, and take long
  FaultRecord fault;      // of the first thread that failed

 private:
  // Five cache lines more than a record: else the lanes' records would share a few sets of the cache.
  static constexpr size_t kRecordStride = kRecordLength + 5 * 64 / sizeof(Event);
  std::unique_ptr<Event[]> records_{new Event[kWarpSize * kRecordStride]};
  unsigned failed_thread_ = 0;
};

}  // namespace simt::trace
