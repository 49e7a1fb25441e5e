// clocks.h: the clocks of all threads of a cluster, and how its barriers change them.
//
// FastTrack gives each thread a full vector clock. Most kernels use the barriers of blocks and warps alone, and for
// them a thread's vector clock follows from three small values, which cost nothing to join:
//
//   the phase of its block: how many __syncthreads the block has passed. A thread knows all accesses by threads of its
//     block in earlier phases;
//   a WarpClock: what the warp's collectives have told it of the other lanes;
//   a GridClock: what atomics have told it of other threads (races.h). The block has one too: what its threads knew of
//     other blocks, and had fenced of their own, when they passed its last barrier.
//
// A kernel that uses clusters, warp groups, mbarriers or units needs more. From its first such call on (`expand`) each
// thread also keeps a pair of full vector clocks, and `full` adds the compressed values to them.
//
// Every barrier is a release by all who take part, then an acquire by all of them: the clocks are joined, everyone gets
// the join, and each participant's own clock goes on by one.
#pragma once

#include <vector>

#include "trace/access.h"
#include "trace/cluster.h"

namespace simt::trace {

class Clocks {
 public:
  explicit Clocks(const Cluster& cluster) : cluster_(cluster) {}
  void begin_cluster();  // after the cluster has begun

  const Slots& slots() const { return slots_; }
  bool expanded() const { return expanded_; }
  void expand() { expanded_ = true; }
  bool kept() const { return !cluster_.session.only_sample; }  // a sample looks for no races: full clocks are empty

  // Barriers. Lane numbers of a mask are relative to `first`; further threads always take part.
  void block_barrier(unsigned rank);
  void group_barrier(unsigned first, unsigned count);  // of a block or a warp group
  void warp_barrier(unsigned warp, unsigned lanes);

  // One thread's synchronisation through mbarriers and units.
  Epoch epoch(unsigned i) const { return {slots_.thread(i), threads_[i].clock}; }
  ProxyClocks full(unsigned i) const;  // everything thread i knows, its own accesses included
  const VectorClock& acquired(unsigned i) const { return vectors_[i].generic; }  // all it knows of units
  void acquire(unsigned i, const ProxyClocks& released) { vectors_[i].acquire(released); }
  void acquire(unsigned i, Epoch epoch);
  void fence(unsigned i);                         // the proxy fence
  void memory_fence(unsigned i, Scope scope);     // __threadfence
  void tick(unsigned i) { ++threads_[i].clock; }  // after a release: later accesses are not part of it

  // What a strong write of thread i tells the next strong access at its address: all that the thread knew at its last
  // __threadfence of this scope at least, all that threads of its block had fenced before the block's last barrier, and
  // the write itself. False: there was no such fence.
  bool release(unsigned i, Scope scope, GridClock& into) const;
  bool narrow_fences() const { return narrow_fences_; }  // whether a thread has executed one of less than the device

  // Thread i as it accesses memory itself.
  Accessor thread(unsigned i) {
    Thread& t = threads_[i];
    return {static_cast<uint32_t>(cluster_.number),
            t.block->phase,
            t.clock,
            t.slot,
            &t.warp,
            &t.block->grid,
            &t.grid,
            &vectors_[i],
            Agent::thread,
            !expanded_ && !fenced_};
  }
  // A unit that accesses memory for thread i and knows `clocks`, which must outlive the accessor.
  Accessor wgmma(unsigned i, const ProxyClocks& clocks) {
    Accessor unit = thread(i);
    unit.clocks = &clocks;
    unit.agent = Agent::wgmma;
    return unit;
  }
  Accessor tma(unsigned i, Epoch epoch, const ProxyClocks& clocks, Agent agent = Agent::tma) {
    Accessor unit = thread(i);
    unit.slot = epoch.slot;
    unit.clock = epoch.clock;
    unit.clocks = &clocks;
    unit.agent = agent;
    return unit;
  }

 private:
  struct Fence {                    // the last fence of a thread with a certain scope
    uint32_t phase = 0, clock = 0;  // when it was; clock 0: there was none
    WarpClock warp{};
  };
  static constexpr unsigned kScopes = unsigned(Scope::device);
  struct BlockClock {
    GridClock grid;
    uint32_t phase = 0;
  };
  struct Thread {
    uint32_t clock = 1, at_barrier = 0;  // now; when it passed the last barrier of its block
    uint32_t slot = 0;                   // here, and the block, since finding them takes divisions
    BlockClock* block = nullptr;
    WarpClock warp{};
    GridClock grid;
  };
  const Fence* fence(unsigned i, Scope scope) const;
  void raise_fenced(unsigned i, const Fence& fence, GridClock& into) const;
  void join(unsigned first, unsigned count, unsigned lanes);

  const Cluster& cluster_;
  Slots slots_;
  std::vector<Thread> threads_ = std::vector<Thread>(kMaxClusterThreads);
  std::vector<Fence> fences_;  // by thread and scope; empty until there is one
  std::vector<ProxyClocks> vectors_ = std::vector<ProxyClocks>(kMaxClusterThreads);
  BlockClock blocks_[kMaxClusterBlocks];
  bool expanded_ = false;
  bool fenced_ = false;  // a thread has executed a fence: clocks of the grid can be used from here on
  bool narrow_fences_ = false;
};

}  // namespace simt::trace
