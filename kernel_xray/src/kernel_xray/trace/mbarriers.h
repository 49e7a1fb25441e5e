// mbarriers.h: mbarriers of a cluster: who arrives, who waits, and the clock that a phase hands over.
//
// The state of an mbarrier is in its 64 bits of shared memory (threads/mbarrier.h). The tracer adds release clocks: an
// arrival releases the thread's clock into `arriving`, a TMA load that completes on the barrier releases its own epoch.
// When the phase is complete, all of that moves to `released`, which a thread acquires when its wait succeeds.
//
// An mbarrier is memory as well: init is a plain write to it, every other operation an atomic update, and both are
// checked like any access. TMA uses the barrier through the async proxy, so it needs a proxy fence after init.
// Limits: `released` is kept from phase to phase, so that a thread that asks late for an old phase may learn too much;
// TMA loads may complete on 63 mbarriers per block.
#pragma once

#include <unordered_map>

#include "threads/mbarrier.h"
#include "trace/races.h"

namespace simt::trace {

class MBarriers {
 public:
  MBarriers(Cluster& cluster, Clocks& clocks, Races& races) : cluster_(cluster), clocks_(clocks), races_(races) {}
  void begin_cluster();

  // On the fibre of the calling thread, after its record was replayed. The caller of `init` writes the barrier's state.
  void init(void* barrier);
  void arrive(void* barrier, int bytes, Epoch unit = {0, 0});  // `unit`: work that is complete by then
  void expect(void* barrier, int bytes);
  // True: the phase of this parity is complete, and acquired. Otherwise suspends the thread, which has to try again.
  bool wait(void* barrier, unsigned parity, const void* site);

  // A TMA load by the running thread: begin_load gives the epoch of the load, complete_load counts its bytes. Or a
  // value that it sends, which also tells what the thread knows.
  Epoch begin_load(void* barrier, bool sent);
  void complete_load(void* barrier, Epoch load, const Accessor& loader, int bytes, bool sent);

  // For the scheduler.
  // Lets threads go on whose phase is complete; false if there was none. A phase that products complete takes as long as
  // any thread can go on (`quiet`: none can): else a warp would run ahead of others, for which it does not wait, by two
  // phases, which they cannot tell from none.
  bool open(bool quiet);
  const MBarrier& waited_for(unsigned i) const { return *waits_[i].barrier; }

 private:
  struct State {
    ProxyClocks arriving, released;
    Epoch init{0, 0};       // of the thread that initialised it
    Epoch load{0, 0};       // of the last TMA load; slot 0: there was none
    bool products = false;  // tcgen05.commit arrives here
  };
  struct Wait {
    const MBarrier* barrier = nullptr;
    unsigned parity = 0, rounds = 0;
    bool open = false;  // the phase was complete while the thread waited
    bool operator==(const Wait& other) const { return barrier == other.barrier && parity == other.parity; }
  };
  void access(const Accessor& accessor, const void* barrier, Kind kind);
  bool warp_follows(unsigned i, Wait wait) const;
  void check_init(unsigned i, const void* barrier);
  void count_arrivals(void* barrier, unsigned arrivals, int bytes);

  Cluster& cluster_;
  Clocks& clocks_;
  Races& races_;
  std::unordered_map<const void*, State> states_;
  // By thread: what it waits for, and what it has waited for last.
  std::vector<Wait> waits_ = std::vector<Wait>(kMaxClusterThreads), passed_ = std::vector<Wait>(kMaxClusterThreads);
  unsigned loaders_[kMaxClusterBlocks] = {};  // mbarriers with TMA loads, by rank
};

}  // namespace simt::trace
