// scheduler.h: runs the threads of a cluster, warp by warp, until all have ended or none can go on.
//
// Warps take turns in an order drawn from the session's seed. In a turn, each lane of the warp, again in a random
// order, runs until it stops: at a barrier, at the end, with a full record, or where its earlier accesses have to be
// replayed first (Waiting::turn). Then the records are replayed in step (replay.h) and the warp's collectives answered.
// When no lane of any warp can run, the barriers of blocks and clusters open.
//
// A warp whose lanes only wait for memory to change (a lock, a flag) ends its turn. A cluster that has used up its budget
// of steps, and the session's time, goes on without being watched: nothing more is recorded, counted or checked.
//
// Deviation from CUDA: blocks and clusters run one after another, so a block that waits for another one may never end.
#pragma once

#include "trace/barriers.h"
#include "trace/replay.h"
#include "trace/units.h"

namespace simt::trace {

// No thread of the cluster can go on: records the failure for the first thread that has not ended (deadlock.cpp).
void report_deadlock(Cluster& cluster, const MBarriers& mbarriers);

class Scheduler {
 public:
  Scheduler(Cluster& cluster, Replay& replay, Barriers& barriers, MBarriers& mbarriers, Units& units, Clocks& clocks)
      : cluster_(cluster),
        replay_(replay),
        barriers_(barriers),
        mbarriers_(mbarriers),
        units_(units),
        clocks_(clocks) {}

  static void fibre_main();  // what each thread's fibre runs
  void run();

 private:
  bool run_warps();
  void run_warp(unsigned warp);
  void resume(unsigned i);
  void run_fibre(unsigned i, Lane& lane);
  void record_signal_or_fault(unsigned i);
  bool open_barriers();
  void release_replayed(unsigned warp);
  bool only_spins(unsigned warp) const;
  void replay(unsigned warp, bool all);
  void stop_watching();
  const unsigned* shuffled(unsigned n, unsigned* order);

  Cluster& cluster_;
  Replay& replay_;
  Barriers& barriers_;
  MBarriers& mbarriers_;
  Units& units_;
  Clocks& clocks_;
  bool asked_ = false;  // Python has already searched for tensors during this launch
};

}  // namespace simt::trace
