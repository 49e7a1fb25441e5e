// traced_block.h: one block of a traced kernel, or the blocks of a cluster, which run together. It owns the parts of
// the tracer and connects them; each part describes its own model.
#pragma once

#include "trace/scheduler.h"
#include "trace/shared_arrays.h"

namespace simt {
namespace trace {

class TracedBlock {
 public:
  TracedBlock(const Job& job, Session& session, LaunchInfo& info)
      : info_(info),
        cluster(job, session.regions),
        outcome(cluster, session),
        shared(cluster, session.regions, outcome),
        clocks(cluster),
        races(cluster, clocks, outcome),
        replay(cluster, clocks, races, outcome, session, info),
        barriers(cluster, clocks, outcome),
        mbarriers(cluster, clocks, races, outcome),
        units(cluster, clocks, races, outcome, mbarriers, session),
        scheduler(cluster, replay, barriers, mbarriers, units, outcome, clocks, session) {}

  // Runs the cluster whose first block has this index and number. False: it failed, as `outcome.fault` describes.
  bool run(uint3 index, uint64_t number);

 private:
  LaunchInfo& info_;

 public:  // for the device side, on the fibre of the calling thread; in the order in which they depend on each other
  Cluster cluster;
  Outcome outcome;
  SharedArrays shared;
  Clocks clocks;
  Races races;
  Replay replay;
  Barriers barriers;
  MBarriers mbarriers;
  Units units;
  Scheduler scheduler;
};

extern __thread TracedBlock* this_block SIMT_TLS;  // the block that this thread is running, or null

}  // namespace trace
}  // namespace simt
