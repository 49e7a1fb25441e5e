// two_sums.h: two sums over the threads of a row, in two steps, so that other work and
// a barrier can lie between them.
#pragma once

#include "cluster.h"
#include "row.h"

namespace ladder {

// Two sums as one value, which a block of a cluster can send.
template <typename W>
struct alignas(2 * sizeof(W)) Pair {
  W first, second;
};

// Both sums over a warp's lanes, through the same shuffles: half of the lanes have the
// first, half the second.
template <typename W>
__device__ W one_of_sums(W first, W second, bool second_here) {
  W mine = second_here ? second : first, other = second_here ? first : second;
  mine += __shfl_xor_sync(ladder::kAll, other, kWarp / 2);
  return ladder::sum_of_lanes<kWarp / 2>(mine);
}

// Groups in a block, which add up their sums at the end.
template <int threads>
constexpr int kGroups = threads < 128 ? 128 / threads : 1;

// Two sums over the row's threads in two steps, so that other work and the barrier can
// lie between them. Both sums go through the same shuffles.
template <typename W, int threads, bool in_a_warp = (threads < kWarp)>
struct TwoSums {
  static constexpr int warps = threads / kWarp;
  W of_warps[kGroups<threads>][2][warps];

  // All lanes of a warp must call it.
  __device__ void put(int y, W first, W second) {
    int lane = threadIdx.x % kWarp;
    bool upper = lane >= kWarp / 2;
    W mine = one_of_sums(first, second, upper);
    if (lane % (kWarp / 2) == 0) of_warps[y][upper][threadIdx.x / kWarp] = mine;
  }

  // After a barrier. All lanes of a warp must call it.
  __device__ void get(int y, W& first, W& second) const {
    bool upper = threadIdx.x / warps % 2;
    W mine = ladder::sum_of_lanes<warps>(of_warps[y][upper][threadIdx.x % warps]);
    W other = __shfl_xor_sync(ladder::kAll, mine, warps);
    first = upper ? other : mine;
    second = upper ? mine : other;
  }
};
// For several rows in a warp. Each lane has a place: no barrier is needed.
template <typename W, int threads>
struct TwoSums<W, threads, true> {
  Pair<W> of_lanes[kGroups<threads>][threads];

  __device__ void put(int y, W first, W second) {
    of_lanes[y][threadIdx.x] = {ladder::sum_of_lanes<threads>(first),
                                ladder::sum_of_lanes<threads>(second)};
  }
  __device__ void get(int y, W& first, W& second) const {
    auto [one, two] = of_lanes[y][threadIdx.x];
    first = one, second = two;
  }
};

}  // namespace ladder
