// traced_block.h: one block of a traced kernel, or the blocks of a cluster, which run together. It owns the parts of
// the tracer and connects them; each part describes its own model. A kernel's calls enter the tracer here.
#pragma once

#include "trace/columns.h"
#include "trace/scheduler.h"

namespace simt::trace {

// The shared memory of a cluster's blocks, with red zones between variables.
//
// Each block has an arena: its dynamic shared memory first, then one array per __shared__ declaration, in the order in
// which threads reach them. Deviation from CUDA: 128 bytes between variables belong to none of them, so that an index
// past an array's end is found. 128 is a multiple of all banks, so a variable's banks do not change.
class SharedArrays {
 public:
  explicit SharedArrays(Cluster& cluster) : cluster_(cluster) {}
  void begin_cluster();
  void end_cluster();

  // The address of a __shared__ variable in the running thread's block; fails beyond CUDA's limits of 48 and 227 KiB.
  void* variable(const SharedSite* site, size_t bytes, size_t alignment);
  size_t declared() const { return declared_; }  // bytes of static shared memory

 private:
  void add(size_t offset, size_t bytes, const std::string& name);

  Cluster& cluster_;
  std::vector<std::pair<const SharedSite*, size_t>> sites_;  // with their offsets
  std::vector<uint64_t> added_;                              // starts of regions
  size_t used_ = 0, declared_ = 0;
};

class TracedBlock {
 public:
  TracedBlock(const Job& job, Session& session, LaunchInfo& info)
      : info_(info),
        cluster(job, session),
        shared(cluster),
        clocks(cluster),
        races(cluster, clocks),
        replay(cluster, clocks, races, info),
        barriers(cluster, clocks),
        mbarriers(cluster, clocks, races),
        units(cluster, clocks, races, mbarriers, replay.work.footprint),
        columns(cluster, clocks),
        scheduler(cluster, replay, barriers, mbarriers, units, clocks) {}

  // Runs the cluster whose first block has this index and number. False: it failed, as `cluster.fault` describes.
  bool run(uint3 index, uint64_t number);

 private:
  LaunchInfo& info_;

 public:  // for a kernel's calls, on the fibre of the calling thread; in the order in which they depend on each other
  Cluster cluster;
  SharedArrays shared;
  Clocks clocks;
  Races races;
  Replay replay;
  Barriers barriers;
  MBarriers mbarriers;
  Units units;
  TensorColumns columns;
  Scheduler scheduler;
};

extern __thread TracedBlock* this_block SIMT_TLS;  // the block that this thread is running, or null

// A kernel's call to the traced block. The hooks are silent until it returns.
class Call {
 public:
  TracedBlock* operator->() const { return this_block; }

 private:
  const Silence silence_;
};

// A call that may only be handled after the thread's earlier accesses: suspends it until its record was replayed, then
// silences the hooks. `site` is the return address of the kernel's call.
class OrderedCall {
 public:
  explicit OrderedCall(const void* site) {
    this_block->clocks.expand();
    this_block->cluster.suspend(FibreThread::Waiting::turn, site);
    silence_.begin();
  }
  TracedBlock* operator->() const { return this_block; }

 private:
  Silence silence_;
};

}  // namespace simt::trace
