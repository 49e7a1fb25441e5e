// vector_scale.cu: Scale a vector. Exercise 1 of lesson 01, about 5 minutes.
//
// `out[i] = factor * x[i]` for each of n elements, one thread per element. Blocks have
// 256 threads, and the launcher starts enough of them for n elements: the last block
// usually has threads past the end, which must do nothing. The kernel moves 8 bytes per
// element.
//
// Check this file with: python -m helpers check vector_scale
//
// [hints]
// - Which element is this thread's? Count the threads in all earlier blocks, then add
//   its index in its own block. The built-in variables are blockIdx.x, blockDim.x and
//   threadIdx.x.
// - blockIdx.x * blockDim.x is computed in 32 bits, but the index must have 64. Convert
//   one of the two to int64_t first.
// - For n = 257 there are 512 threads. Thread 257 exists, element 257 does not: which
//   comparison with n admits threads 0 to 256, and no others?
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, out: n floats each. Thread i of the grid owns element i.
__global__ void vector_scale_kernel(const float* x, float factor, float* out,
                                    int64_t n) {
  // [solution: about 2 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * x[i];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void vector_scale(const Tensor& x, double factor, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  vector_scale_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                        ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), float(factor), out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("vector_scale(Tensor x, float factor, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("vector_scale", TORCH_BOX(&vector_scale));
}
