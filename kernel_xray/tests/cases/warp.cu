// warp.cu: collectives of the 32 lanes of a warp: shuffles, votes, matches, reductions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "case.h"

__device__ unsigned lane_id() { return (threadIdx.y * blockDim.x + threadIdx.x) % warpSize; }

// ------------------------------------------------------------------------------------------------------------------
// Shuffles. A row of `kShuffles` answers per thread; the lane's own value is 100 + thread.

constexpr int kShuffles = 11;
constexpr unsigned kAll = 0xffffffffu;

template <typename T>
__global__ void shuffles_kernel(T* out) {
  const int i = threadIdx.x, lane = i % 32;
  const T value = T(100 + i);
  T* row = out + kShuffles * i;
  row[0] = __shfl_sync(kAll, value, 5);
  row[1] = __shfl_sync(kAll, value, (lane + 1) % 32);
  row[2] = __shfl_up_sync(kAll, value, 3);
  row[3] = __shfl_down_sync(kAll, value, 3);
  row[4] = __shfl_xor_sync(kAll, value, 16);
  row[5] = __shfl_sync(kAll, value, 2, 8);
  row[6] = __shfl_up_sync(kAll, value, 1, 4);
  row[7] = __shfl_down_sync(kAll, value, 5, 16);
  row[8] = __shfl_xor_sync(kAll, value, 1, 2);
  row[9] = __shfl_sync(kAll, value, 37);  // lanes are counted modulo the width
  row[10] = __shfl_sync(kAll, value, -1);
}

CASE(shuffles) {
  with_type<int, float, double, long long, unsigned, unsigned long long, __half, __nv_bfloat16>(
      call.number(0), [&](auto zero) { shuffles_kernel<<<1, 64>>>(call.data<decltype(zero)>(0)); });
}

// The four shuffles of each width and operand, and one of a pair: rows of 32 lanes.
__global__ void every_shuffle_kernel(int* out) {
  const int lane = threadIdx.x;
  out += lane;
  for (int width = 1; width <= 32; width *= 2)
    for (int operand = 0; operand < 32; ++operand, out += 4 * 32) {
      out[0] = __shfl_sync(kAll, lane, operand, width);
      out[32] = __shfl_up_sync(kAll, lane, operand, width);
      out[64] = __shfl_down_sync(kAll, lane, operand, width);
      out[96] = __shfl_xor_sync(kAll, lane, operand, width);
    }
  const __half2 pair = __shfl_down_sync(kAll, __floats2half2_rn(lane, 100 + lane), 1, 2);
  *out = int(__low2float(pair) + __high2float(pair));
}

CASE_OF(every_shuffle, 1, 32)

// Half of the lanes shuffle among themselves while the others do their own; a warp that is not full.
__global__ void partial_kernel(int* out) {
  const int i = threadIdx.x;
  int value = 10 * i;
  if (i % 2 == 0) {
    value = __shfl_down_sync(0x55555555u, value, 2);
    if (i >= 30) value = -1;  // its source lies beyond the warp, so it got its own value
  } else {
    value = __shfl_xor_sync(0xaaaaaaaau, value, 2);
  }
  out[i] = value;
}

__global__ void short_warp_kernel(int* out) {
  const unsigned mask = __ballot_sync(__activemask(), 1);
  out[threadIdx.x] = __shfl_sync(mask, int(threadIdx.x) + 7, 19) + __popc(mask);
}

CASE(partial_masks) {
  partial_kernel<<<1, 32>>>(call.data<int>(0));
  short_warp_kernel<<<1, 20>>>(call.data<int>(1));
}

// The tutorials' reduction: per warp, then one value per warp through shared memory.
__inline__ __device__ float warp_sum(float value) {
#pragma unroll
  for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}

__global__ void block_sum_kernel(const float* in, float* out) {
  __shared__ float partial[32];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  float value = warp_sum(in[blockIdx.x * threads + thread]);
  if (thread % 32 == 0) partial[thread / 32] = value;
  __syncthreads();
  if (thread < 32) {
    value = warp_sum(thread < threads / 32 ? partial[thread] : 0.0f);
    if (lane_id() == 0) out[blockIdx.x] = value;
  }
}

CASE(block_sum) { block_sum_kernel<<<call.size(1), dim3(16, 16)>>>(call.data<float>(0), call.data<float>(1)); }

// ------------------------------------------------------------------------------------------------------------------
// Votes: a row of 5 per thread.

__global__ void votes_kernel(unsigned* out) {
  const int i = threadIdx.x, lane = i % 32, warp = i / 32;
  unsigned* row = out + 5 * i;
  row[0] = __ballot_sync(kAll, lane % 3 == 0);
  row[1] = __any_sync(kAll, warp == 1 && lane == 4) != 0;
  row[2] = __all_sync(kAll, warp == 0 || lane != 4) != 0;
  row[3] = __activemask();
  row[4] = 0;
  if (lane < 12) row[4] = __ballot_sync(0xfffu, lane & 1);
  __syncwarp();
}

CASE(votes) { votes_kernel<<<1, 64>>>(call.data<unsigned>(0)); }

// __activemask after some lanes have returned.
__global__ void active_kernel(unsigned* out) {
  const int lane = threadIdx.x;
  if (lane >= 24) return;
  __syncwarp(0x00ffffffu);
  out[lane] = __activemask();
}

CASE(active_mask) { active_kernel<<<1, 32>>>(call.data<unsigned>(0)); }

// Lanes that have returned, and lanes that the block never had.
__global__ void returned_kernel(unsigned* out) {
  if (threadIdx.x == 31) return;
  out[2 * threadIdx.x] = __ballot_sync(0xffffffffu, 1);
}
__global__ void short_block_kernel(unsigned* out) { out[2 * threadIdx.x + 1] = __ballot_sync(0xffffffffu, 1); }

CASE(absent_lanes) {
  returned_kernel<<<1, 32>>>(call.data<unsigned>(0));
  short_block_kernel<<<1, 20>>>(call.data<unsigned>(0));
}

// __syncwarp makes one lane's write visible to the others of its warp.
__global__ void syncwarp_kernel(int* out) {
  __shared__ int cells[64];
  const int i = threadIdx.x, first = i / 32 * 32;
  cells[i] = i * i;
  __syncwarp();
  const int next = cells[first + (i + 1) % 32];
  __syncwarp();
  cells[i] = next + 1;
  __syncwarp();
  out[i] = cells[first + (i + 31) % 32];
}

CASE(sync_warp) { syncwarp_kernel<<<1, 64>>>(call.data<int>(0)); }

// ------------------------------------------------------------------------------------------------------------------
// Matches and reductions: a row of 12 per thread.

__global__ void match_kernel(unsigned* out) {
  const int i = threadIdx.x, lane = i % 32;
  unsigned* row = out + 12 * i;
  int same = -1;
  row[0] = __match_any_sync(kAll, lane / 5);
  row[1] = __match_all_sync(kAll, 7, &same);
  row[2] = unsigned(same != 0);
  row[3] = __match_all_sync(kAll, lane == 9, &same);
  row[4] = unsigned(same != 0);
  row[5] = __match_any_sync(kAll, 1.5 * (lane % 2));
  row[6] = __reduce_add_sync(kAll, unsigned(lane));
  row[7] = unsigned(__reduce_min_sync(kAll, lane - 20));  // signed
  row[8] = __reduce_max_sync(kAll, unsigned(lane - 20));  // unsigned
  row[9] = __reduce_and_sync(kAll, unsigned(lane) | 0x40u);
  row[10] = __reduce_or_sync(kAll, 1u << lane % 4);
  row[11] = __reduce_xor_sync(kAll, unsigned(lane) * 3u);
}

CASE(match_and_reduce) { match_kernel<<<1, 64>>>(call.data<unsigned>(0)); }
