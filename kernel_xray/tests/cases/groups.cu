// groups.cu: cooperative_groups for a thread block, its tiles, and the threads that happen to be together.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "case.h"

namespace cg = cooperative_groups;

// Eight numbers per thread: the sizes and ranks of its groups, in a block of 2 x 24 threads.
__global__ void identity_kernel(int* out) {
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const auto tile = cg::tiled_partition<8>(block);
  store_all(out + 8 * block.thread_rank(), block.size(), block.thread_index().y * 100 + block.thread_index().x,
            block.group_index().x, warp.thread_rank(), tile.thread_rank(), tile.meta_group_rank(),
            tile.meta_group_size(), tile.size() + block.num_threads() + block.dim_threads().x);
}

CASE(identity) { identity_kernel<<<1, dim3(24, 2)>>>(call.data<int>(0)); }

// The classic: a block's sum by tiles, shared memory and sync() of a group passed to a function.
template <typename Group>
__device__ float reduce_in(Group group, float* scratch, float value) {
  const int lane = int(group.thread_rank());
  for (int i = int(group.size()) / 2; i > 0; i /= 2) {
    scratch[lane] = value;
    group.sync();
    if (lane < i) value += scratch[lane + i];
    group.sync();
  }
  return value;
}

__global__ void sums_kernel(const float* in, float* out) {
  __shared__ float scratch[128];
  cg::thread_block block = cg::this_thread_block();
  const float block_total = reduce_in(block, scratch, in[threadIdx.x]);
  cg::sync(block);
  const auto tile = cg::tiled_partition<16>(block);
  const float tile_total = reduce_in(tile, scratch + 16 * (threadIdx.x / 16), in[threadIdx.x]);
  if (block.thread_rank() == 0) out[0] = block_total;
  if (tile.thread_rank() == 0) out[1 + tile.meta_group_rank()] = tile_total;
}

CASE(sums) { sums_kernel<<<1, 128>>>(call.data<float>(0), call.data<float>(1)); }

// Collectives of a tile; a row of 9 per thread.
__global__ void tile_kernel(int* out) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int lane = int(tile.thread_rank()), i = threadIdx.x;
  int* row = out + 9 * i;
  row[0] = tile.shfl(i, 3);
  row[1] = tile.shfl_up(i, 1);
  row[2] = tile.shfl_down(i, 2);
  row[3] = tile.shfl_xor(i, 1);
  row[4] = int(tile.ballot(lane % 2));
  row[5] = tile.any(lane == 7) + 10 * tile.all(lane < 7);
  row[6] = int(tile.match_any(lane / 4));
  row[7] = cg::reduce(tile, i, cg::plus<int>());
  row[8] = cg::reduce(tile, i, cg::greater<int>());
  tile.sync();
}

CASE(tile_collectives) { tile_kernel<<<1, 64>>>(call.data<int>(0)); }

struct Ranked {
  double value;
  int index;
};

__global__ void more_of_tiles_kernel(int* out) {
  const int i = threadIdx.x;
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const auto inner = cg::tiled_partition<2>(tile);
  const cg::thread_group dynamic = cg::tiled_partition(cg::this_thread_block(), 4);
  const auto larger = [](const Ranked& a, const Ranked& b) { return a.value < b.value ? b : a; };
  store_all(out + 8 * i, inner.meta_group_rank(), inner.meta_group_size(), dynamic.thread_rank(), dynamic.size(),
            cg::reduce(tile, i, cg::less<int>()), cg::inclusive_scan(tile, 1), cg::exclusive_scan(tile, 2),
            cg::reduce(tile, Ranked{double(i * 7 % 8), i}, larger).index);
  dynamic.sync();
}

CASE_OF(more_of_tiles, 1, 32)

__global__ void odd_lanes_kernel(int* out) {
  const int i = threadIdx.x;
  if (i % 2 == 0) return;
  const cg::coalesced_group odd = cg::coalesced_threads();
  store_all(out + 7 * i, odd.thread_rank(), odd.size(), odd.shfl(i, 5), odd.shfl_up(i, 1), odd.shfl_down(i, 1),
            odd.ballot(i == 31 || i == 3), cg::reduce(odd, i, cg::plus<int>()));
}

CASE_OF(odd_lanes, 1, 32)

__global__ void partitions_kernel(int* out) {
  const int i = threadIdx.x;
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const cg::coalesced_group thirds = cg::labeled_partition(tile, (i + 1) % 3);
  const cg::coalesced_group low = cg::binary_partition(thirds, i % 16 < 4), all = cg::labeled_partition(tile, true);
  const cg::coalesced_group pairs = cg::tiled_partition(thirds, 2);
  store_all(out + 11 * i, thirds.meta_group_rank(), thirds.meta_group_size(), thirds.thread_rank(), thirds.size(),
            low.meta_group_rank(), low.meta_group_size(), low.shfl(i, 0), all.meta_group_rank(), all.size(),
            pairs.meta_group_rank(), pairs.shfl(i, 0));
}

CASE_OF(partitions, 1, 32)

// The threads of a warp that took the same branch: one atomic for all of them.
__global__ void coalesced_kernel(int* counter, int* out) {
  const int i = threadIdx.x;
  out[i] = -1;
  if (i % 3 == 0) {
    const cg::coalesced_group active = cg::coalesced_threads();
    int first = 0;
    if (active.thread_rank() == 0) first = atomicAdd(counter, int(active.size()));
    out[i] = active.shfl(first, 0) + int(active.thread_rank());
  }
}

CASE(coalesced) { coalesced_kernel<<<1, 64>>>(call.data<int>(0), call.data<int>(1)); }
