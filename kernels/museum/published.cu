// museum/published.cu: mistakes that an X-ray or a user found in published kernels, in
// kernels of our own; each has a fixed twin. helpers/pages/museum/published.py names
// the sources.
//
//   masked_half          a causal softmax writes half of a matrix, and the product
//                        reads all of it
//   winner_overwritten   furthest-point sampling: no barrier between reading the winner
//                        and the next round
//   late_clearing        threads count into shared bins before all of them are cleared
//   block_barrier        bins are cleared by all blocks, and a barrier of one block is
//                        taken for one of the grid
//   scan_in_place        a scan that adds its neighbour's sum while the neighbour
//                        changes it
//   sum_into_empty       atomicAdd into an output that was never set to zero
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
constexpr int kBins = 16;

__device__ inline int64_t thread_index() {
  return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}

// -------------------------------------------------------------------------------------
// masked_half: weight = softmax of row t of scores [n, n] over its columns 0 to t; out
// = weight @ values, with values [n]

__device__ void causal_softmax(const float* row, float* weight, int64_t t) {
  float largest = -INFINITY, sum = 0.0f;
  for (int64_t s = 0; s <= t; ++s) largest = fmaxf(largest, row[s]);
  for (int64_t s = 0; s <= t; ++s) sum += expf(row[s] - largest);
  for (int64_t s = 0; s <= t; ++s) weight[s] = expf(row[s] - largest) / sum;
}

__global__ void softmax_kernel(const float* scores, float* weight, int64_t n) {
  int64_t t = thread_index();
  if (t < n) causal_softmax(scores + t * n, weight + t * n, t);
}

__global__ void softmax_fixed_kernel(const float* scores, float* weight, int64_t n) {
  int64_t t = thread_index();
  if (t >= n) return;
  causal_softmax(scores + t * n, weight + t * n, t);
  // Position t does not see what comes after it.
  for (int64_t s = t + 1; s < n; ++s) weight[t * n + s] = 0.0f;
}

__global__ void masked_half_kernel(const float* weight, const float* values, float* out,
                                   int64_t n) {
  int64_t t = thread_index();
  if (t >= n) return;
  float sum = 0.0f;
  for (int64_t s = 0; s < n; ++s)
    sum += weight[t * n + s] * values[s];  // <- uninitialised-read
  out[t] = sum;
}

// -------------------------------------------------------------------------------------
// winner_overwritten: picks points of x [n], each as far as possible from those before;
// the first is x[0]. One block. nearest: scratch memory, the distance from each point
// to the nearest one that was picked.

__global__ void winner_overwritten_kernel(const float* x, float* nearest, int* picked,
                                          int64_t n, int64_t picks) {
  __shared__ float distance[kThreads];
  __shared__ int candidate[kThreads];
  unsigned thread = threadIdx.x;
  int winner = 0;
  for (int64_t i = thread; i < n; i += kThreads) nearest[i] = INFINITY;
  for (int64_t pick = 0; pick < picks; ++pick) {
    if (thread == 0) picked[pick] = winner;
    float furthest = -1.0f;
    int mine = 0;
    for (int64_t i = thread; i < n; i += kThreads) {
      nearest[i] = fminf(nearest[i], fabsf(x[i] - x[winner]));
      if (nearest[i] > furthest) furthest = nearest[i], mine = int(i);
    }
    distance[thread] = furthest;
    candidate[thread] = mine;  // <- race
    __syncthreads();
    for (unsigned step = kThreads / 2; step > 0; step /= 2) {
      if (thread < step && distance[thread + step] > distance[thread]) {
        distance[thread] = distance[thread + step];
        candidate[thread] = candidate[thread + step];
      }
      __syncthreads();
    }
    winner = candidate[0];  // <- race
  }
}

__global__ void winner_overwritten_fixed_kernel(const float* x, float* nearest,
                                                int* picked, int64_t n, int64_t picks) {
  __shared__ float distance[kThreads];
  __shared__ int candidate[kThreads];
  unsigned thread = threadIdx.x;
  int winner = 0;
  for (int64_t i = thread; i < n; i += kThreads) nearest[i] = INFINITY;
  for (int64_t pick = 0; pick < picks; ++pick) {
    if (thread == 0) picked[pick] = winner;
    float furthest = -1.0f;
    int mine = 0;
    for (int64_t i = thread; i < n; i += kThreads) {
      nearest[i] = fminf(nearest[i], fabsf(x[i] - x[winner]));
      if (nearest[i] > furthest) furthest = nearest[i], mine = int(i);
    }
    distance[thread] = furthest;
    candidate[thread] = mine;
    __syncthreads();
    for (unsigned step = kThreads / 2; step > 0; step /= 2) {
      if (thread < step && distance[thread + step] > distance[thread]) {
        distance[thread] = distance[thread + step];
        candidate[thread] = candidate[thread + step];
      }
      __syncthreads();
    }
    winner = candidate[0];
    // All threads have read the winner: the next round may overwrite it.
    __syncthreads();
  }
}

// -------------------------------------------------------------------------------------
// late_clearing, block_barrier: bins[v] = how many of the n values equal v; values are
// 0 to 15. One block, and many.

__global__ void late_clearing_kernel(const int* values, int* bins, int64_t n) {
  __shared__ int mine[kBins];
  if (threadIdx.x < kBins) mine[threadIdx.x] = 0;  // <- race
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    atomicAdd(&mine[values[i]], 1);  // <- race
  }
  __syncthreads();
  if (threadIdx.x < kBins) bins[threadIdx.x] = mine[threadIdx.x];
}

__global__ void late_clearing_fixed_kernel(const int* values, int* bins, int64_t n) {
  __shared__ int mine[kBins];
  if (threadIdx.x < kBins) mine[threadIdx.x] = 0;
  __syncthreads();  // all bins are cleared
  for (int64_t i = threadIdx.x; i < n; i += kThreads) atomicAdd(&mine[values[i]], 1);
  __syncthreads();
  if (threadIdx.x < kBins) bins[threadIdx.x] = mine[threadIdx.x];
}

__global__ void block_barrier_kernel(const int* values, int* bins, int64_t n) {
  int64_t i = thread_index();
  if (i < kBins) bins[i] = 0;  // <- race
  __syncthreads();  // waits for this block; another one may be counting already
  if (i < n) {
    atomicAdd(&bins[values[i]], 1);  // <- race
  }
}

// Two launches: the end of the first is a barrier for the whole grid.
__global__ void clear_kernel(int* bins) {
  if (threadIdx.x < kBins) bins[threadIdx.x] = 0;
}
__global__ void count_kernel(const int* values, int* bins, int64_t n) {
  int64_t i = thread_index();
  if (i < n) atomicAdd(&bins[values[i]], 1);
}

// -------------------------------------------------------------------------------------
// scan_in_place: out[i] = a[0] + ... + a[i] for 64 floats, by one block

__global__ void scan_in_place_kernel(const float* a, float* out) {
  __shared__ float sum[kThreads];
  unsigned i = threadIdx.x;
  sum[i] = a[i];
  for (unsigned step = 1; step < kThreads; step *= 2) {
    __syncthreads();
    if (i >= step) {
      sum[i] += sum[i - step];  // <- race
    }
  }
  out[i] = sum[i];
}

__global__ void scan_in_place_fixed_kernel(const float* a, float* out) {
  __shared__ float sum[kThreads];
  unsigned i = threadIdx.x;
  sum[i] = a[i];
  for (unsigned step = 1; step < kThreads; step *= 2) {
    __syncthreads();  // all sums of the step before are written
    float left = i >= step ? sum[i - step] : 0.0f;
    __syncthreads();  // all are read: they may change
    sum[i] += left;
  }
  out[i] = sum[i];
}

// -------------------------------------------------------------------------------------
// sum_into_empty: out[0] = sum of n floats; each thread adds its own to the output

__global__ void sum_into_empty_kernel(const float* a, float* out, int64_t n) {
  int64_t i = thread_index();
  if (i < n) {
    atomicAdd(out, a[i]);  // <- uninitialised-read
  }
}

// -------------------------------------------------------------------------------------
// Launchers

template <typename Softmax>
Tensor attend(Softmax softmax, const Tensor& scores, const Tensor& values) {
  ladder::check_input(scores, "scores", ScalarType::Float);
  ladder::check_input(values, "values", ScalarType::Float);
  int64_t n = values.numel();
  STD_TORCH_CHECK(scores.dim() == 2 && scores.size(0) == n && scores.size(1) == n,
                  "scores must be [", n, ", ", n, "], as values has ", n,
                  " elements; got ", ladder::shape_of(scores));
  auto guard = ladder::on_device_of(scores);
  Tensor weight = torch::stable::empty_like(scores),
         out = torch::stable::empty_like(values);
  if (n == 0) return out;
  auto stream = ladder::current_stream(scores);
  int64_t blocks = ceil_div(n, kThreads);
  softmax<<<blocks, kThreads, 0, stream>>>(scores.const_data_ptr<float>(),
                                           weight.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  masked_half_kernel<<<blocks, kThreads, 0, stream>>>(weight.const_data_ptr<float>(),
                                                      values.const_data_ptr<float>(),
                                                      out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor masked_half(const Tensor& scores, const Tensor& values) {
  return attend(softmax_kernel, scores, values);
}
Tensor masked_half_fixed(const Tensor& scores, const Tensor& values) {
  return attend(softmax_fixed_kernel, scores, values);
}

template <typename Launch>
Tensor sample(const Tensor& x, int64_t picks, Launch launch) {
  ladder::check_input(x, "x", ScalarType::Float);
  STD_TORCH_CHECK(x.numel() > 0, "x must have points to pick, got none");
  auto guard = ladder::on_device_of(x);
  Tensor nearest = torch::stable::empty_like(x),
         picked = torch::stable::new_empty(x, {picks}, ScalarType::Int);
  launch(1, ladder::current_stream(x), x.const_data_ptr<float>(),
         nearest.mutable_data_ptr<float>(), picked.mutable_data_ptr<int>(), x.numel(),
         picks);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return picked;
}

Tensor winner_overwritten(const Tensor& x, int64_t picks) {
  return sample(x, picks, LAUNCH(winner_overwritten_kernel, 1));
}
Tensor winner_overwritten_fixed(const Tensor& x, int64_t picks) {
  return sample(x, picks, LAUNCH(winner_overwritten_fixed_kernel, 1));
}

// bins: 16 int32, of any value.
template <typename Launch>
void count(const Tensor& values, Tensor& bins, Launch launch) {
  ladder::check_input(values, "values", ScalarType::Int);
  ladder::check_input(bins, "bins", ScalarType::Int);
  auto guard = ladder::on_device_of(values);
  int64_t blocks = std::max<int64_t>(1, ceil_div(values.numel(), kThreads));
  launch(blocks, ladder::current_stream(values), values.const_data_ptr<int>(),
         bins.mutable_data_ptr<int>(), values.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void late_clearing(const Tensor& values, Tensor bins) {
  count(values, bins, LAUNCH(late_clearing_kernel, 1));
}
void late_clearing_fixed(const Tensor& values, Tensor bins) {
  count(values, bins, LAUNCH(late_clearing_fixed_kernel, 1));
}
void block_barrier(const Tensor& values, Tensor bins) {
  count(values, bins, LAUNCH(block_barrier_kernel, blocks));
}
void block_barrier_fixed(const Tensor& values, Tensor bins) {
  count(values, bins,
        [](int64_t blocks, cudaStream_t stream, const int* from, int* to, int64_t n) {
          clear_kernel<<<1, kThreads, 0, stream>>>(to);
          count_kernel<<<blocks, kThreads, 0, stream>>>(from, to, n);
        });
}

template <typename Launch>
Tensor scan(const Tensor& a, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Float);
  STD_TORCH_CHECK(a.numel() == kThreads, "a must have 64 elements, got ", a.numel());
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  launch(1, ladder::current_stream(a), a.const_data_ptr<float>(),
         out.mutable_data_ptr<float>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor scan_in_place(const Tensor& a) {
  return scan(a, LAUNCH(scan_in_place_kernel, 1));
}
Tensor scan_in_place_fixed(const Tensor& a) {
  return scan(a, LAUNCH(scan_in_place_fixed_kernel, 1));
}

Tensor total(const Tensor& a, bool clear) {
  ladder::check_input(a, "a", ScalarType::Float);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::new_empty(a, {1});
  auto stream = ladder::current_stream(a);
  if (clear) cudaMemsetAsync(out.mutable_data_ptr<float>(), 0, sizeof(float), stream);
  if (a.numel() == 0) return out;
  sum_into_empty_kernel<<<ceil_div(a.numel(), kThreads), kThreads, 0, stream>>>(
      a.const_data_ptr<float>(), out.mutable_data_ptr<float>(), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor sum_into_empty(const Tensor& a) { return total(a, false); }
Tensor sum_into_empty_fixed(const Tensor& a) { return total(a, true); }

// -------------------------------------------------------------------------------------
// Registration: each exhibit and its fixed twin

#define EXHIBITS(each)                                                      \
  each(masked_half, "(Tensor scores, Tensor values) -> Tensor")             \
      each(winner_overwritten, "(Tensor x, int picks) -> Tensor")           \
          each(late_clearing, "(Tensor values, Tensor(b!) bins) -> ()")     \
              each(block_barrier, "(Tensor values, Tensor(b!) bins) -> ()") \
                  each(scan_in_place, "(Tensor a) -> Tensor")               \
                      each(sum_into_empty, "(Tensor a) -> Tensor")

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { EXHIBITS(DEFINE); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { EXHIBITS(IMPLEMENT); }
