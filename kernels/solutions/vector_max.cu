// vector_max.cu: The largest of many, or NaN. Exercise 4 of lesson 06, about 30 minutes.
//
// `out[r]` is the largest element of row r of `x`: NaN if the row has one, and minus
// infinity if it has no elements. Block r of 256 threads owns row r. Each thread goes
// over its part; then the 32 lanes of a warp compare their results by
// `__shfl_down_sync`, without shared memory; then one thread compares the results of
// the eight warps.
//
// Check this file with: python -m helpers check vector_max
//
// [hints]
// - Every comparison with NaN is false, and fmaxf drops a NaN. isnan(b) finds it.
// - What is the largest element of an empty row? Starting at 0, or at the smallest
//   positive float, is wrong for a row of negative elements.
// - __shfl_down_sync(0xffffffff, v, d) gives each lane the v of the lane d places
//   further up. With d = 16, 8, 4, 2, 1, lane 0 has seen all 32. All lanes of the warp
//   must take part, even those without elements.
// - Lane 0 of each warp writes to an array of eight __shared__ floats; after a
//   __syncthreads() thread 0 reads them.
// [end]

#include <torch/csrc/stable/library.h>

#include <cmath>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256, kWarp = 32;  // per block, and per warp

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// The larger of a and b; NaN if either is NaN.
__device__ float larger(float a, float b) {
  float result = a;
  // [solution: about 1 line]
  if (b > a || isnan(b)) result = b;
  // [end]
  return result;
}

// x: a row of n floats for each block, row by row; out: a float for each block.
// kThreads = 256, kWarp = 32.
__global__ void vector_max_kernel(const float* x, float* out, int64_t n) {
  // [solution: about 11 lines]
  __shared__ float of_warps[kThreads / kWarp];
  x += blockIdx.x * n;
  float most = -INFINITY;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) most = larger(most, x[i]);
  for (int d = kWarp / 2; d > 0; d /= 2)
    most = larger(most, __shfl_down_sync(0xffffffff, most, d));
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = most;
  __syncthreads();  // all eight are written
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kThreads / kWarp; ++warp)
      most = larger(most, of_warps[warp]);
    out[blockIdx.x] = most;
  }
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void vector_max(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  STD_TORCH_CHECK(out.dim() == 1 && out.size(0) == x.size(0),
                  "out must have one element for each of the ", x.size(0),
                  " rows of x, got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  int64_t rows = x.size(0), n = x.size(1);
  STD_TORCH_CHECK(rows <= INT32_MAX,
                  "x must have fewer than 2^31 rows, a block each, got ", rows);
  if (rows == 0) return;
  vector_max_kernel<<<rows, kThreads, 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("vector_max(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("vector_max", TORCH_BOX(&vector_max));
}
