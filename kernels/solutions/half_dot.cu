// half_dot.cu: Add up halves in a float. Exercise 4 of lesson 05, about 30 minutes.
//
// `out[r]` is the dot product of row r of `a` and row r of `b`: the sum over i of `a[r,
// i] * b[r, i]`. The inputs are float16, the result is float32. A half that has reached
// 2,048 does not change when 1 is added, so compute products and sums in float. Block r
// of 256 threads owns row r: each thread adds up its part, then the block adds up 256
// sums.
//
// Check this file with: python -m helpers check half_dot
//
// [hints]
// - A thread begins at its threadIdx.x and goes on in steps of 256. Then neighbouring
//   threads read neighbouring halves, and every n works, even one below 256.
// - Each thread writes its sum, 0 if it had nothing to add, to an array of 256
//   __shared__ floats.
// - A tree halves the number of sums: the first 128 threads add element t + 128 to
//   element t, then the first 64 add element t + 64, and so on down to 1. Between two
//   steps all 256 threads must reach a __syncthreads().
// - In the end one thread writes element 0 to out[blockIdx.x].
// [end]

#include <cuda_fp16.h>

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::headeronly::Half;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block, a power of two

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// a, b: a row of n halves for each block, row by row; out: a float for each block. A
// block has kThreads = 256 threads.
__global__ void half_dot_kernel(const __half* a, const __half* b, float* out,
                                int64_t n) {
  // [solution: about 12 lines]
  __shared__ float sums[kThreads];
  a += blockIdx.x * n;
  b += blockIdx.x * n;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads)
    sum += __half2float(a[i]) * __half2float(b[i]);
  sums[threadIdx.x] = sum;
  __syncthreads();  // all sums are written
  for (int part = kThreads / 2; part > 0; part /= 2) {
    if (threadIdx.x < part) sums[threadIdx.x] += sums[threadIdx.x + part];
    __syncthreads();  // this step's sums are written before the next step reads them
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void half_dot(const Tensor& a, const Tensor& b, Tensor out) {
  ladder::check_input(a, "a", torch::headeronly::ScalarType::Half);
  ladder::check_input(b, "b", torch::headeronly::ScalarType::Half);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(a, "a", b, "b");
  STD_TORCH_CHECK(a.dim() == 2, "a must be a matrix, got shape ", ladder::shape_of(a));
  STD_TORCH_CHECK(out.dim() == 1 && out.size(0) == a.size(0),
                  "out must have one element for each of the ", a.size(0),
                  " rows of a, got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(a);
  int64_t rows = a.size(0), n = a.size(1);
  STD_TORCH_CHECK(rows <= INT32_MAX,
                  "a must have fewer than 2^31 rows, a block each, got ", rows);
  if (rows == 0) return;
  half_dot_kernel<<<rows, kThreads, 0, ladder::current_stream(a)>>>(
      reinterpret_cast<const __half*>(a.const_data_ptr<Half>()),
      reinterpret_cast<const __half*>(b.const_data_ptr<Half>()),
      out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("half_dot(Tensor a, Tensor b, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("half_dot", TORCH_BOX(&half_dot));
}
