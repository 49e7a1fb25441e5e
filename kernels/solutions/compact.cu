// compact.cu: Keep what is positive. Exercise 3 of lesson 07, about 30 minutes.
//
// The operator returns `x[x > 0]`, in the order of x. Three kernels: yours are the
// first, which counts the positive elements of each block of 256 threads, and the last,
// which writes a block's results, beginning at `first[b]`. The second, given, turns
// counts into beginnings. A thread reads only its own element of x: ballots tell it
// about its warp, and `__syncthreads_count(p)`, a barrier, how many threads of its
// block have a true p. Atomics, whose order is left to chance, are not allowed.
//
// Check this file with: python -m helpers check compact
//
// [hints]
// - All threads of a block come to __syncthreads_count, those past the end with false.
// - In the second kernel a thread's element goes to first[blockIdx.x], plus the number
//   of elements that earlier warps of the block keep, plus the number that earlier
//   lanes of the warp keep.
// - __ballot_sync(0xffffffff, p) gives every lane of a warp a word with one bit per
//   lane, and __popc counts bits. The lanes before lane l are the bits of (1u << l) -
//   1.
// - Each warp writes its count to an array of eight __shared__ ints; a barrier comes
//   before the array is read. NaN is not positive: write x[i] > 0.
// [end]

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256, kWarp = 32;  // per block, and per warp
// The mask of a shuffle in which all 32 lanes take part.
constexpr unsigned kAll = 0xffffffff;

// -------------------------------------------------------------------------------------
// Kernels

// [cell]
// x: n floats. Block b, of kThreads = 256 threads, writes to counts[b] how many of its
// elements are positive.
__global__ void count_kernel(const float* x, int64_t n, int64_t* counts) {
  // [solution: about 3 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int kept = __syncthreads_count(i < n && x[i] > 0);
  if (threadIdx.x == 0) counts[blockIdx.x] = kept;
  // [end]
}

// Block b writes its positive elements, in their order, to out[first[b]], out[first[b]
// + 1], ... kWarp = 32.
__global__ void compact_kernel(const float* x, int64_t n, const int64_t* first,
                               float* out) {
  // [solution: about 10 lines]
  __shared__ int of_warps[kThreads / kWarp];
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  bool keep = i < n && x[i] > 0;
  unsigned kept = __ballot_sync(kAll, keep);
  if (lane == 0) of_warps[warp] = __popc(kept);
  __syncthreads();  // all eight counts are written
  int64_t place = first[blockIdx.x] + __popc(kept & ((1u << lane) - 1));
  for (int w = 0; w < warp; ++w) place += of_warps[w];
  if (keep) out[place] = x[i];
  // [end]
}
// [end]

// One thread. Replaces each count by the index where the block's results begin, and
// appends the sum of all counts. This is fast enough for a few thousand blocks; more
// would need a parallel scan.
__global__ void begin_kernel(int64_t* counts, int64_t blocks) {
  int64_t sum = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    int64_t count = counts[b];
    counts[b] = sum;
    sum += count;
  }
  counts[blocks] = sum;
}

// -------------------------------------------------------------------------------------
// Launcher

Tensor compact(const Tensor& x) {
  ladder::check_input(x, "x", ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 1, "x must be a vector, got shape ", ladder::shape_of(x),
                  "; pass x.flatten()");
  auto guard = ladder::on_device_of(x);
  cudaStream_t stream = ladder::current_stream(x);
  int64_t n = x.numel(), blocks = ladder::ceil_div(n, kThreads), kept = 0;
  if (n == 0) return torch::stable::new_empty(x, {0});
  Tensor first = torch::stable::new_empty(x, {blocks + 1}, ScalarType::Long);
  first = torch::stable::zero_(first);
  int64_t* begin = first.mutable_data_ptr<int64_t>();
  count_kernel<<<blocks, kThreads, 0, stream>>>(x.const_data_ptr<float>(), n, begin);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  begin_kernel<<<1, 1, 0, stream>>>(begin, blocks);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  // The host needs the size before it can allocate, so it waits for the GPU.
  STD_CUDA_CHECK(cudaMemcpyAsync(&kept, begin + blocks, sizeof kept,
                                 cudaMemcpyDeviceToHost, stream));
  STD_CUDA_CHECK(cudaStreamSynchronize(stream));
  STD_TORCH_CHECK(kept >= 0 && kept <= n, "the blocks have counted ", kept, " of ", n,
                  " elements");
  Tensor out = torch::stable::new_empty(x, {kept});
  compact_kernel<<<blocks, kThreads, 0, stream>>>(x.const_data_ptr<float>(), n, begin,
                                                  out.mutable_data_ptr<float>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("compact(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("compact", TORCH_BOX(&compact));
}
