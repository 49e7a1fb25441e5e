// warps.cu: the lanes of a warp work together: shuffles, votes, __syncwarp, cooperative groups.
#include "idiom.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

constexpr int kThreads = 64;  // two warps

__device__ inline int lane_index() { return threadIdx.x % 32; }

// ---------------------------------------------------------------------------------------------------------------------
// Sums

// In shared memory, warp-synchronous: each step is two barriers of the warp.
template <bool kBug>
__global__ void tree_sum_kernel(const float* a, float* out) {
  __shared__ float sums[kThreads];
  const int i = threadIdx.x;
  sums[i] = a[thread_index()];
  __syncthreads();
  if (i >= 32) return;
  for (int offset = 32; offset > 0; offset /= 2) {
    const float sum = sums[i] + sums[i + offset];
    if (!kBug) __syncwarp();  // all lanes have read
    sums[i] = sum;
    __syncwarp();
  }
  if (i == 0) out[blockIdx.x] = sums[0];
}

IDIOM_OF(tree_sum, call.size(0) / kThreads, kThreads)

// Shuffles in each warp, then the first warp adds what the warps have left.
template <bool kBug>
__global__ void block_sum_kernel(const float* a, float* out, int n) {
  __shared__ float sums[32];
  const int i = thread_index(), lane = lane_index(), warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const float mine = warp_sum(i < n ? a[i] : 0.0f);
  if (lane == 0) sums[warp] = mine;
  __syncthreads();
  if (warp > 0) return;
  const float total = warp_sum(kBug || lane < warps ? sums[lane] : 0.0f);
  if (lane == 0) out[blockIdx.x] = total;
}

IDIOM_OF(block_sum, ceil_div(call.n(0), 96), 96)

// A warp whose last lanes have nothing to add: only the others take part, and none reads from beyond them.
template <bool kBug>
__global__ void tail_sum_kernel(const float* a, float* out, int n) {
  const int lane = threadIdx.x;
  const unsigned mask = __ballot_sync(kAll, lane < n);
  if (lane >= n) return;
  float sum = a[lane];
  for (int offset = 16; offset > 0; offset /= 2) {
    const int source = lane + offset < n ? lane + offset : lane;
    const float other = __shfl_sync(mask, sum, kBug ? lane + offset : source);
    if (source > lane) sum += other;
  }
  if (lane == 0) *out = sum;
}

IDIOM_OF(tail_sum, 1, 32)

// Cooperative groups: tiles of eight threads, then one thread of the block.
template <bool kBug>
__global__ void tile_sum_kernel(const float* a, float* out, int n) {
  __shared__ float sums[kThreads / 8];
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = thread_index();
  const float sum = cg::reduce(tile, i < n ? a[i] : 0.0f, cg::plus<float>());
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = sum;
  if (!kBug) block.sync();
  if (block.thread_rank() != 0) return;
  float total = 0.0f;
  for (int k = 0; k < kThreads / 8; ++k) total += sums[k];
  atomicAdd(out, total);
}

IDIOM_OF(tile_sum, ceil_div(call.n(0), kThreads), kThreads)

// Sums of neighbours with the same key. The last lane of each run in a warp adds the run's sum to the key's.
template <bool kBug>
__global__ void segmented_sum_kernel(const int* keys, const float* values, float* out, int n) {
  const int i = thread_index(), lane = lane_index(), key = i < n ? keys[i] : -1;
  float sum = i < n ? values[i] : 0.0f;
  for (int offset = 1; offset < 32; offset *= 2) {
    const float before = __shfl_up_sync(kAll, sum, offset);
    const int its_key = __shfl_up_sync(kAll, key, offset);
    if (lane >= offset && its_key == key) sum += before;
  }
  const int next = __shfl_down_sync(kAll, key, 1);
  if (key < 0 || (lane < 31 && next == key)) return;
  if (kBug)
    out[key] += sum;
  else
    atomicAdd(&out[key], sum);
}

IDIOM_OF(segmented_sum, ceil_div(call.n(0), kThreads), kThreads)

// A sparse matrix (CSR) times a vector, a warp per row.
template <bool kBug>
__global__ void csr_warp_kernel(const int* starts, const int* columns, const float* values, const float* x, float* y,
                                int rows) {
  const int row = thread_index() / 32, lane = lane_index();
  if (!kBug && row >= rows) return;
  float sum = 0.0f;
  for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) sum += values[k] * x[columns[k]];
  sum = warp_sum(sum);
  if (lane == 0) y[row] = sum;
}

IDIOM_OF(csr_warp, ceil_div(call.n(0), 4), 128)

// ---------------------------------------------------------------------------------------------------------------------
// Scans and compaction

template <bool kBug>
__global__ void warp_scan_kernel(const int* a, int* out, int n) {
  const int i = thread_index();
  int sum = i < n ? a[i] : 0;
  for (int offset = 1; offset < 32; offset *= 2) {
    const int before = __shfl_up_sync(kBug ? 0x0000ffffu : kAll, sum, offset);
    if (lane_index() >= offset) sum += before;
  }
  if (i < n) out[i] = sum;
}

IDIOM_OF(warp_scan, ceil_div(call.n(0), kThreads), kThreads)

// From counts to starts within each warp: its first lane adds, the others wait.
template <bool kBug>
__global__ void leader_scan_kernel(const int* counts, int* starts) {
  __shared__ int prefix[kThreads];
  const int i = threadIdx.x;
  prefix[i] = counts[thread_index()];
  __syncwarp();
  if (lane_index() == 0) {
    int sum = 0;
    for (int k = i; k < i + 32; ++k) {
      const int count = prefix[k];
      prefix[k] = sum;
      sum += count;
    }
  }
  if (!kBug) __syncwarp();
  starts[thread_index()] = prefix[i];
}

IDIOM_OF(leader_scan, call.size(0) / kThreads, kThreads)

// Keeps the multiples of three. A ballot gives each lane its place; the first lane reserves places for the warp.
template <bool kBug>
__global__ void compact_kernel(const int* a, int* count, int* out, int n) {
  const int i = thread_index(), lane = lane_index();
  const bool keep = i < n && a[i] % 3 == 0;
  const unsigned kept = __ballot_sync(kAll, keep);
  int base = 0;
  if (lane == 0) base = kBug ? (*count += __popc(kept)) - __popc(kept) : atomicAdd(count, __popc(kept));
  base = __shfl_sync(kAll, base, 0);
  if (keep) out[base + __popc(kept & ((1u << lane) - 1))] = a[i];
}

IDIOM_OF(compact, ceil_div(call.n(0), kThreads), kThreads)

// Keeps the odd numbers: the lanes that are there add to the counter once, together.
template <bool kBug>
__global__ void aggregated_kernel(const int* a, int* count, int* out, int n) {
  const int i = thread_index();
  if (i >= n || a[i] % 2 == 0) return;
  const auto group = cg::coalesced_threads();
  int base = 0;
  if (group.thread_rank() == 0) base = atomicAdd(count, static_cast<int>(group.size()));
  base = group.shfl(base, 0);
  out[base + (kBug ? 0 : group.thread_rank())] = a[i];
}

IDIOM_OF(aggregated, ceil_div(call.n(0), kThreads), kThreads)

// A histogram in which one lane adds for all lanes that have its key.
template <bool kBug>
__global__ void match_bins_kernel(const int* keys, int* bins, int n) {
  __shared__ int counts[8];
  const int i = thread_index();
  if (threadIdx.x < 8) counts[threadIdx.x] = 0;
  __syncthreads();
  const int key = i < n ? keys[i] : -1;
  const unsigned peers = __match_any_sync(kAll, key);
  if (key >= 0 && lane_index() == __ffs(peers) - 1) {
    if (kBug)
      counts[key] += __popc(peers);
    else
      atomicAdd(&counts[key], __popc(peers));
  }
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

IDIOM_OF(match_bins, ceil_div(call.n(0), kThreads), kThreads)

// ---------------------------------------------------------------------------------------------------------------------
// Rows

// A warp per row, four rows a block. Warps without a row end at once.
template <bool kBug>
__global__ void softmax_kernel(const float* a, float* out, int rows, int columns) {
  __shared__ float exps[4][kThreads];
  const int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
  if (row >= rows) return;
  float largest = -INFINITY, sum = 0.0f;
  for (int c = lane; c < columns; c += 32) largest = fmaxf(largest, a[row * columns + c]);
  for (int offset = 16; offset > 0; offset /= 2) largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, offset));
  for (int c = lane; c < columns; c += 32) sum += exps[threadIdx.y][c] = expf(a[row * columns + c] - largest);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  for (int c = lane; c < columns; c += 32) out[row * columns + c] = exps[kBug ? threadIdx.x : threadIdx.y][c] / sum;
}

IDIOM_OF(softmax, ceil_div(call.n(0), 4), dim3(32, 4))

template <bool kBug>
__device__ float sum_of_block(float value, float* scratch) {  // in every thread
  const float mine = warp_sum(value);
  if (!kBug) __syncthreads();  // threads may still read what the call before has left
  if (lane_index() == 0) scratch[threadIdx.x / 32] = mine;
  __syncthreads();
  return scratch[0] + scratch[1];
}

template <bool kBug>
__global__ void layer_norm_kernel(const float* a, float* out, int columns) {
  __shared__ float scratch[2];
  const float* row = a + blockIdx.x * columns;
  float sum = 0.0f, squares = 0.0f;
  for (int c = threadIdx.x; c < columns; c += kThreads) sum += row[c];
  const float mean = sum_of_block<kBug>(sum, scratch) / columns;
  for (int c = threadIdx.x; c < columns; c += kThreads) squares += (row[c] - mean) * (row[c] - mean);
  const float scale = rsqrtf(sum_of_block<kBug>(squares, scratch) / columns + 1e-5f);
  for (int c = threadIdx.x; c < columns; c += kThreads) out[blockIdx.x * columns + c] = (row[c] - mean) * scale;
}

IDIOM_OF(layer_norm, call.n(1), kThreads)

// Mean and variance of each column (Welford), a warp per column; the lanes' statistics are merged by shuffles.
template <bool kBug>
__global__ void welford_kernel(const float* x, float* statistics, int batch, int columns) {
  const int column = blockIdx.x * blockDim.y + threadIdx.y;
  if (column >= columns) return;
  float count = 0.0f, mean = 0.0f, squares = 0.0f;
  for (int n = threadIdx.x; n < (kBug ? batch + 1 : batch); n += 32) {
    const float value = x[n * columns + column], delta = value - mean;
    count += 1.0f;
    mean += delta / count;
    squares += delta * (value - mean);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float its_count = __shfl_xor_sync(kAll, count, offset), its_mean = __shfl_xor_sync(kAll, mean, offset);
    const float its_squares = __shfl_xor_sync(kAll, squares, offset), delta = its_mean - mean;
    const float both = fmaxf(count + its_count, 1.0f);
    mean += delta * its_count / both;
    squares += its_squares + delta * delta * count * its_count / both;
    count += its_count;
  }
  if (threadIdx.x > 0) return;
  statistics[column] = mean;
  statistics[columns + column] = squares / batch;
}

IDIOM_OF(welford, ceil_div(call.n(1), 2), dim3(32, 2))

// ---------------------------------------------------------------------------------------------------------------------
// Roles

// The first half of each warp reverses its elements, with a barrier of its own.
template <bool kBug>
__global__ void half_warps_kernel(const float* a, float* out) {
  __shared__ float values[kThreads];
  const int i = threadIdx.x;
  values[i] = a[thread_index()];
  float mine = values[i];
  if (lane_index() < 16) {
    __syncwarp(kBug ? kAll : 0x0000ffffu);
    mine = values[i ^ 15];
  }
  __syncthreads();
  out[thread_index()] = mine;
}

IDIOM_OF(half_warps, call.size(0) / kThreads, kThreads)

// The first warp fills a box, the two others use it; two barriers a round say that it is full, and empty again.
template <bool kBug>
__global__ void producer_kernel(const float* a, float* out, int rounds) {
  __shared__ float box[32];
  const int warp = threadIdx.x / 32, lane = lane_index();
  float sum = 0.0f;
  for (int round = 0; round < rounds; ++round) {
    if (warp == 0) box[lane] = a[round * 32 + lane];
    __syncthreads();
    if (warp > 0) sum += box[31 - lane] * warp;
    if (!kBug) __syncthreads();
  }
  if (warp > 0) out[(warp - 1) * 32 + lane] = sum;
}

IDIOM_OF(producer, 1, 96)

// The first warp hands over a box and raises a flag; the second waits for the flag.
template <bool kBug>
__global__ void handshake_kernel(const float* a, float* out) {
  __shared__ float box[32];
  __shared__ int full;
  const int lane = lane_index();
  if (threadIdx.x == 0) full = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    box[lane] = 2 * a[lane];
    __syncwarp();
    if (!kBug) __threadfence_block();
    if (lane == 0) atomicExch(&full, 1);
    return;
  }
  while (lane == 0 && atomicAdd(&full, 0) == 0) {
  }
  __threadfence_block();
  __syncwarp();
  out[lane] = box[31 - lane];
}

IDIOM_OF(handshake, 1, 64)
