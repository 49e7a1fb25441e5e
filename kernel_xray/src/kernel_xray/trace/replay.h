// replay.h: replays the records of a warp's lanes in step, as a warp would have executed them.
//
// The lanes of a warp run one after another. When each has stopped, their records are merged: at each step, all lanes
// whose next event has the chosen key advance together. The key chosen is the lowest (deepest in calls, then lowest
// PC), unless lanes at another key reach it sooner than it is reached from theirs; so lanes reconverge where the
// branches of the source do, wherever the compiler has placed them. The lanes of a step make one request, whose cost
// is counted (metrics.h) and whose accesses are checked (races.h).
//
// Races are checked in the same order, until the kernel executes its first fence. From then on what an atomic access
// acquires depends on the order in which lanes ran, so each lane's record is checked as a whole, in that order.
//
// Deviation from CUDA: since Volta the hardware may schedule diverged lanes in any order and need not reconverge them.
#pragma once

#include <unordered_map>

#include "trace/races.h"
#include "trace/whatif.h"
#include "trace/work.h"

namespace simt::trace {

class Replay {
 public:
  Replay(Cluster& cluster, Clocks& clocks, Races& races, LaunchInfo& info)
      : what_if(cluster.session, cluster.kernel),
        work(cluster, info),
        cluster_(cluster),
        clocks_(clocks),
        races_(races),
        info_(info) {}

  // Replays until the record of some lane that can still run is empty, since its next event might precede the others, or
  // too short to look ahead where lanes diverge. `all`: replays everything, so that another warp can take its turn.
  void run(unsigned warp, bool all = false);
  // Checks the record of thread i for races, as far as it has not been checked.
  void check(unsigned i);

  WhatIf what_if;
  Work work;

 private:
  static constexpr uint64_t kNoKey = ~uint64_t{0};
  uint64_t next_key(const uint64_t* head, unsigned n) const;
  bool goes_on(unsigned i) const;
  bool ends_early(unsigned first, unsigned n) const;
  void check(unsigned i, const Event& event);
  Counts& counts(const Event& event);

  Cluster& cluster_;
  Clocks& clocks_;
  Races& races_;
  LaunchInfo& info_;
  std::unordered_map<uint64_t, Counts*> counts_;  // by the event's key
};

}  // namespace simt::trace
