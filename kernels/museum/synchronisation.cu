// museum/synchronisation.cu: threads that do not wait for each other, or wait in vain;
// each bug has a fixed twin.
//
//   tile_overwritten     no barrier before the next tile overwrites shared memory
//   barrier_in_branch    __syncthreads() inside `if (i < n)`
//   warp_synchronous     lanes of a warp read each other's sums without __syncwarp
//   last_block           the last block adds up what others wrote, without a fence in
//                        between
//   shuffle_in_branch    a shuffle with a full mask that only some lanes reach
//   uncleared_bins       counting in shared memory that was never set to zero
//   lost_updates         counting in global memory without atomics
//   waits_for_all        a block waits for blocks that may not have started
//
// The arrows mark where a tool finds the bug. A race has two ends, and a tool may name
// either.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "exhibits.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 64;  // two warps
constexpr unsigned kAllLanes = 0xffffffffu;

// -------------------------------------------------------------------------------------
// tile_overwritten: out[i] = sum over the tiles t of a[t, 63 - i]; one block, tiles of
// 64 floats

__global__ void tile_overwritten_kernel(const float* a, float* out, int64_t tiles) {
  __shared__ float tile[kThreads];
  float sum = 0.0f;
  for (int64_t t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = a[t * kThreads + threadIdx.x];  // <- race
    __syncthreads();
    sum += tile[kThreads - 1 - threadIdx.x];  // <- race
  }
  out[threadIdx.x] = sum;
}

__global__ void tile_overwritten_fixed_kernel(const float* a, float* out,
                                              int64_t tiles) {
  __shared__ float tile[kThreads];
  float sum = 0.0f;
  for (int64_t t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = a[t * kThreads + threadIdx.x];
    __syncthreads();  // the tile is complete
    sum += tile[kThreads - 1 - threadIdx.x];
    __syncthreads();  // the tile may be overwritten
  }
  out[threadIdx.x] = sum;
}

// -------------------------------------------------------------------------------------
// barrier_in_branch: out[i] = a[i] + a[i - 1] within a block; n floats

__global__ void barrier_in_branch_kernel(const float* a, float* out, int64_t n) {
  __shared__ float tile[kThreads];
  int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  float before = 0.0f;
  if (i < n) {
    tile[threadIdx.x] = a[i];
    __syncthreads();  // <- divergent-barrier
    if (threadIdx.x > 0) before = tile[threadIdx.x - 1];
  }
  // The tile may be overwritten; threads past the end are here one barrier too early.
  __syncthreads();
  tile[threadIdx.x] = before;
  if (i < n) out[i] = a[i] + tile[threadIdx.x];
}

__global__ void barrier_in_branch_fixed_kernel(const float* a, float* out, int64_t n) {
  __shared__ float tile[kThreads];
  int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  float before = 0.0f;
  if (i < n) tile[threadIdx.x] = a[i];
  __syncthreads();  // all threads of the block reach it
  if (i < n && threadIdx.x > 0) before = tile[threadIdx.x - 1];
  __syncthreads();  // the tile may be overwritten
  tile[threadIdx.x] = before;
  if (i < n) out[i] = a[i] + tile[threadIdx.x];
}

// -------------------------------------------------------------------------------------
// warp_synchronous: out[0] = sum of 64 floats, added in pairs by one warp

__global__ void warp_synchronous_kernel(const float* a, float* out, int64_t) {
  __shared__ float cells[kThreads];
  volatile float* cell = cells;
  unsigned i = threadIdx.x;
  cell[i] = a[i];
  __syncthreads();
  if (i < 32) {
    for (unsigned step = 32; step > 0; step /= 2) {
      cell[i] = cell[i] + cell[i + step];  // <- race
    }
    if (i == 0) out[0] = cell[0];
  }
}

__global__ void warp_synchronous_fixed_kernel(const float* a, float* out, int64_t) {
  __shared__ float cells[kThreads];
  unsigned i = threadIdx.x;
  cells[i] = a[i];
  __syncthreads();
  if (i < 32) {
    for (unsigned step = 32; step > 0; step /= 2) {
      float sum = cells[i] + cells[i + step];
      __syncwarp();  // all have read
      cells[i] = sum;
      __syncwarp();  // all have written
    }
    if (i == 0) out[0] = cells[0];
  }
}

// -------------------------------------------------------------------------------------
// last_block: out[0] = sum of n floats: each block leaves a sum in `part`; the last
// block to finish adds these up

// Short, so that thread 0 can do it alone.
__device__ float block_part(const float* a, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = int64_t(blockIdx.x) * kThreads;
       i < n && i < int64_t(blockIdx.x + 1) * kThreads; ++i)
    sum += a[i];
  return sum;
}

__global__ void last_block_kernel(const float* a, float* part, int* finished,
                                  float* out, int64_t n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = block_part(a, n);  // <- race
    last = atomicAdd(finished, 1) == int(gridDim.x) - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += part[b];  // <- race
    out[0] = sum;
  }
}

__global__ void last_block_fixed_kernel(const float* a, float* part, int* finished,
                                        float* out, int64_t n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = block_part(a, n);
    __threadfence();  // the part is visible to all blocks before the count changes
    last = atomicAdd(finished, 1) == int(gridDim.x) - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += part[b];
    out[0] = sum;
  }
}

// -------------------------------------------------------------------------------------
// shuffle_in_branch: out[0] = sum of n <= 32 floats, by one warp

__global__ void shuffle_in_branch_kernel(const float* a, float* out, int64_t n) {
  unsigned lane = threadIdx.x;
  if (lane < n) {
    float sum = a[lane];
    for (unsigned step = 16; step > 0; step /= 2) {
      float other = __shfl_down_sync(kAllLanes, sum, step);  // <- divergent-barrier
      if (lane + step < n) sum += other;
    }
    if (lane == 0) out[0] = sum;
  }
}

__global__ void shuffle_in_branch_fixed_kernel(const float* a, float* out, int64_t n) {
  unsigned lane = threadIdx.x;
  if (lane >= 32) return;
  float sum = lane < n ? a[lane] : 0.0f;
  for (unsigned step = 16; step > 0; step /= 2)
    sum += __shfl_down_sync(kAllLanes, sum, step);
  if (lane == 0) out[0] = sum;
}

// -------------------------------------------------------------------------------------
// uncleared_bins, lost_updates: bins[v] = how many of the n values equal v; values are
// 0 to 15

__global__ void uncleared_bins_kernel(const int* values, int* bins, int64_t n) {
  __shared__ int mine[16];
  for (int64_t i = threadIdx.x; i < n; i += kThreads)
    atomicAdd(&mine[values[i]], 1);  // <- uninitialised-read
  __syncthreads();
  if (threadIdx.x < 16) bins[threadIdx.x] = mine[threadIdx.x];
}

__global__ void uncleared_bins_fixed_kernel(const int* values, int* bins, int64_t n) {
  __shared__ int mine[16];
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < n; i += kThreads) atomicAdd(&mine[values[i]], 1);
  __syncthreads();
  if (threadIdx.x < 16) bins[threadIdx.x] = mine[threadIdx.x];
}

__global__ void lost_updates_kernel(const int* values, int* bins, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) {
    bins[values[i]] += 1;  // <- race
  }
}

__global__ void lost_updates_fixed_kernel(const int* values, int* bins, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) {
    atomicAdd(&bins[values[i]], 1);
  }
}

// -------------------------------------------------------------------------------------
// waits_for_all: out[b] = a[b + 1 mod blocks] + 1, after block b + 1 has added 1 to its
// own element

__global__ void waits_for_all_kernel(float* a, int* arrived, float* out) {
  if (threadIdx.x > 0) return;
  a[blockIdx.x] += 1.0f;
  __threadfence();
  atomicAdd(arrived, 1);
  while (atomicAdd(arrived, 0) < int(gridDim.x)) {  // <- time-limit
  }
  out[blockIdx.x] = a[(blockIdx.x + 1) % gridDim.x];
}

// Two launches: the end of the first is a barrier for the whole grid.
__global__ void add_one_kernel(float* a) {
  if (threadIdx.x == 0) a[blockIdx.x] += 1.0f;
}
__global__ void take_next_kernel(const float* a, float* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = a[(blockIdx.x + 1) % gridDim.x];
}

// -------------------------------------------------------------------------------------
// Launchers. Each helper checks its tensors and passes pointers, sizes and a stream to
// `launch`.

Tensor fresh(const Tensor& like, int64_t size) {
  return torch::stable::new_empty(like, {size});
}

// One block of 64 threads, with `size` as the kernel's last argument.
template <typename Launch>
Tensor by_one_block(const Tensor& a, int64_t outputs, int64_t size, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Float);
  auto guard = ladder::on_device_of(a);
  Tensor out = fresh(a, outputs);
  launch(1, ladder::current_stream(a), a.const_data_ptr<float>(),
         out.mutable_data_ptr<float>(), size);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor tile_overwritten(const Tensor& a) {
  return by_one_block(a, kThreads, a.numel() / kThreads,
                      LAUNCH(tile_overwritten_kernel, blocks));
}
Tensor tile_overwritten_fixed(const Tensor& a) {
  return by_one_block(a, kThreads, a.numel() / kThreads,
                      LAUNCH(tile_overwritten_fixed_kernel, blocks));
}
Tensor warp_synchronous(const Tensor& a) {
  return by_one_block(a, 1, a.numel(), LAUNCH(warp_synchronous_kernel, blocks));
}
Tensor warp_synchronous_fixed(const Tensor& a) {
  return by_one_block(a, 1, a.numel(), LAUNCH(warp_synchronous_fixed_kernel, blocks));
}
Tensor shuffle_in_branch(const Tensor& a) {
  return by_one_block(a, 1, a.numel(), LAUNCH(shuffle_in_branch_kernel, blocks));
}
Tensor shuffle_in_branch_fixed(const Tensor& a) {
  return by_one_block(a, 1, a.numel(), LAUNCH(shuffle_in_branch_fixed_kernel, blocks));
}

template <typename Launch>
Tensor with_left_neighbour(const Tensor& a, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Float);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  launch(ceil_div(a.numel(), kThreads), ladder::current_stream(a),
         a.const_data_ptr<float>(), out.mutable_data_ptr<float>(), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor barrier_in_branch(const Tensor& a) {
  return with_left_neighbour(a, LAUNCH(barrier_in_branch_kernel, blocks));
}
Tensor barrier_in_branch_fixed(const Tensor& a) {
  return with_left_neighbour(a, LAUNCH(barrier_in_branch_fixed_kernel, blocks));
}

// finished: one int32, zero.
template <typename Launch>
Tensor sum_by_blocks(const Tensor& a, Tensor& finished, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(finished, "finished", ScalarType::Int);
  auto guard = ladder::on_device_of(a);
  int64_t blocks = ceil_div(a.numel(), kThreads);
  Tensor part = fresh(a, blocks), out = fresh(a, 1);
  launch(blocks, ladder::current_stream(a), a.const_data_ptr<float>(),
         part.mutable_data_ptr<float>(), finished.mutable_data_ptr<int>(),
         out.mutable_data_ptr<float>(), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor last_block(const Tensor& a, Tensor finished) {
  return sum_by_blocks(a, finished, LAUNCH(last_block_kernel, blocks));
}
Tensor last_block_fixed(const Tensor& a, Tensor finished) {
  return sum_by_blocks(a, finished, LAUNCH(last_block_fixed_kernel, blocks));
}

// bins: 16 int32, zeros.
template <typename Launch>
void count(const Tensor& values, Tensor& bins, int64_t blocks, Launch launch) {
  ladder::check_input(values, "values", ScalarType::Int);
  ladder::check_input(bins, "bins", ScalarType::Int);
  auto guard = ladder::on_device_of(values);
  launch(blocks, ladder::current_stream(values), values.const_data_ptr<int>(),
         bins.mutable_data_ptr<int>(), values.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void uncleared_bins(const Tensor& values, Tensor bins) {
  count(values, bins, 1, LAUNCH(uncleared_bins_kernel, blocks));
}
void uncleared_bins_fixed(const Tensor& values, Tensor bins) {
  count(values, bins, 1, LAUNCH(uncleared_bins_fixed_kernel, blocks));
}
void lost_updates(const Tensor& values, Tensor bins) {
  count(values, bins, ceil_div(values.numel(), kThreads),
        LAUNCH(lost_updates_kernel, blocks));
}
void lost_updates_fixed(const Tensor& values, Tensor bins) {
  count(values, bins, ceil_div(values.numel(), kThreads),
        LAUNCH(lost_updates_fixed_kernel, blocks));
}

// arrived: one int32, zero.
Tensor waits_for_all(Tensor a, Tensor arrived) {
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(arrived, "arrived", ScalarType::Int);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  waits_for_all_kernel<<<a.numel(), 32, 0, ladder::current_stream(a)>>>(
      a.mutable_data_ptr<float>(), arrived.mutable_data_ptr<int>(),
      out.mutable_data_ptr<float>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor waits_for_all_fixed(Tensor a, Tensor) {
  ladder::check_input(a, "a", ScalarType::Float);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  add_one_kernel<<<a.numel(), 32, 0, ladder::current_stream(a)>>>(
      a.mutable_data_ptr<float>());
  take_next_kernel<<<a.numel(), 32, 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), out.mutable_data_ptr<float>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration: each exhibit and its fixed twin

#define EXHIBITS(each)                                                                 \
  each(tile_overwritten, "(Tensor a) -> Tensor")                                       \
      each(barrier_in_branch, "(Tensor a) -> Tensor")                                  \
          each(warp_synchronous, "(Tensor a) -> Tensor")                               \
              each(last_block, "(Tensor a, Tensor(b!) finished) -> Tensor")            \
                  each(shuffle_in_branch, "(Tensor a) -> Tensor")                      \
                      each(uncleared_bins, "(Tensor values, Tensor(b!) bins) -> ()")   \
                          each(lost_updates, "(Tensor values, Tensor(b!) bins) -> ()") \
                              each(waits_for_all,                                      \
                                   "(Tensor(a!) a, Tensor(b!) arrived) -> Tensor")

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { EXHIBITS(DEFINE); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { EXHIBITS(IMPLEMENT); }
