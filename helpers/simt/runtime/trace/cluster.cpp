// cluster.cpp: where a cluster's threads begin, and how they are suspended.
#include "trace/cluster.h"

namespace simt {
namespace trace {

__thread Lane* current_lane SIMT_TLS = nullptr;

Cluster::Cluster(const Job& new_job, Regions& regions)
    : job(new_job), worker(Worker::current()), kernel(new_job.site->kernel) {
  for (Lane& lane : lanes) lane.regions = &regions;
}

void Cluster::begin(uint3 index, uint64_t new_number, void (*entry)()) {
  const dim3 block = job.config.block;
  worker.begin_cluster(job, index);
  number = new_number;
  block_threads = block.x * block.y * block.z;
  count = alive = worker.cluster_blocks * block_threads;
  for (unsigned w = 0; w < warps(); ++w) {
    const unsigned n = lanes_of(w);
    warp_state[w] = {n == kWarpSize ? kFullMask : (1u << n) - 1, 0};
  }
  for (unsigned i = 0; i < count; ++i) {
    FibreThread& t = threads[i];
    const unsigned j = index_of(i);
    t.self = {index_in(j, block), &worker.blocks[rank_of(i)].geometry, j};
    t.waiting = FibreThread::Waiting::no;
    t.exited = false;
    state[i] = {};
    make_context(t.context, worker.stacks.low(i), worker.stacks.top(i), entry);
  }
}

void Cluster::suspend() { switch_context(worker.running->context, worker.scheduler); }

void Cluster::suspend(FibreThread::Waiting why, const void* site) {
  worker.running->waiting = why;
  state[running()].site = site;
  suspend();
}

uint64_t Cluster::number_of(uint64_t first, unsigned rank) const {
  const dim3 grid = job.config.grid, cluster = job.site->cluster;
  return first + rank % cluster.x +
         uint64_t{grid.x} * (rank / cluster.x % cluster.y + uint64_t{grid.y} * (rank / (cluster.x * cluster.y)));
}

}  // namespace trace
}  // namespace simt
