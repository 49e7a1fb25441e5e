// split_barrier.cu: a cluster's barrier in two parts: threads arrive, do something else, and wait for the others.
// Needs -arch=sm_90.
#include <cooperative_groups.h>

#include "case.h"

constexpr int kThreads = 64;

enum How {
  kRounds,       // each writes for its peer, arrives, works for itself, waits and reads
  kFunctions,    // the same by the functions of cooperative_groups
  kBuiltIn,      // and by the built-in ones
  kMixed,        // half of the threads arrive and wait at once
  kFlag,         // a block spins between the two until the other one, past its wait, sets a flag
  kEnds,         // a warp of each block ends before it arrives, and another one before it waits
  kReadsEarly,   // a mistake: reads before it waits
  kWritesLate,   // another: writes after it has arrived
  kNeverArrives  // waits alone, which is taken for the whole barrier
};

__global__ void __cluster_dims__(2, 1, 1) split_kernel(int* out, int* flag, int rounds, int how) {
  namespace cg = cooperative_groups;
  __shared__ int own[kThreads];
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const cg::cluster_group cluster = cg::this_cluster();
  const int* const peer = cluster.map_shared_rank(own, cluster.block_rank() ^ 1);
  cg::cluster_group::arrival_token token;
  const auto arrive = [&] {
    if (how == kNeverArrives || (how == kMixed && t % 2)) return;
    if (how == kFunctions)
      token = cluster.barrier_arrive();
    else if (how == kBuiltIn)
      __cluster_barrier_arrive();
    else
      asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  };
  const auto wait = [&] {
    if (how == kMixed && t % 2)
      cluster.sync();
    else if (how == kFunctions)
      cluster.barrier_wait(std::move(token));
    else if (how == kBuiltIn)
      __cluster_barrier_wait();
    else
      asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  };
  if (how == kEnds && t < 32 && block == 0) return;
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    if (how != kWritesLate) own[t] = 100 * block + t + round;
    arrive();
    if (how == kWritesLate) own[t] = 100 * block + t + round;  // <- late
    if (how == kEnds && block == 1 && t < 32) return;
    if (how == kReadsEarly) sum += peer[t];  // <- early
    if (how == kFlag && block == 0)
      while (atomicAdd(flag, 0) <= round) __nanosleep(100);
    wait();
    if (how == kFlag && block == 1 && t == 0) atomicAdd(flag, 1);
    if (how != kReadsEarly) sum += how == kEnds ? own[t] : peer[t];  // <- read
    arrive();
    out[kThreads * block + t] = sum;
    wait();
  }
}

// The sums that each thread of two blocks has read, and a flag; how often, and how.
CASE(split) { split_kernel<<<2, kThreads>>>(call.ints(0), call.ints(1), call.n(0), call.n(1)); }

// The grid's barrier between the two parts: each cluster is put aside there, with what has arrived.
__global__ void __cluster_dims__(2, 1, 1) around_grid_kernel(int* out, int* begun) {
  namespace cg = cooperative_groups;
  __shared__ int own;
  const cg::cluster_group cluster = cg::this_cluster();
  const int t = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 3; ++round) {
    if (t == 0) own = 10 * static_cast<int>(blockIdx.x) + round;
    for (unsigned i = blockIdx.x / 2; i < 3; ++i) cluster.sync();  // so that clusters differ in their phases
    auto token = cluster.barrier_arrive();
    if (t == 0) atomicAdd(begun, 1);
    cg::this_grid().sync();
    if (t < 32) cluster.barrier_wait(std::move(token));
    if (t == 0) out[3 * blockIdx.x + round] = *begun * 100 + *cluster.map_shared_rank(&own, cluster.block_rank() ^ 1);
    cg::this_grid().sync();
    if (t >= 32) cluster.barrier_wait(std::move(token));
    cluster.sync();
  }
}
CASE(around_grid) {
  int* pointers[] = {call.ints(0), call.ints(1)};
  void* arguments[] = {&pointers[0], &pointers[1]};
  cudaLaunchCooperativeKernel(around_grid_kernel, 8, kThreads, arguments);
}
