// reverse.cu: Turn a vector around. Exercise 2 of lesson 00, about 5 minutes.
//
// `out` holds the n elements of `x` in reverse: its first element is the last of `x`.
// There is one thread per element; a block has 256 threads, and the launcher starts as
// many blocks as needed. Find out which element a thread reads and where that element
// goes. The last block usually has threads past the end, which must touch nothing.
//
// Check this file with: python -m helpers check reverse
//
// [hints]
// - Thread i of the grid has i = blockIdx.x * blockDim.x + threadIdx.x. In 64 bits,
//   that is int64_t(blockIdx.x) * blockDim.x + threadIdx.x.
// - Try it with n = 3: where do x[0], x[1] and x[2] go? The two indices add up to the
//   same number each time.
// - out[n] does not exist: the last element is out[n - 1].
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, out: n floats each. One thread per element.
__global__ void reverse_kernel(const float* x, float* out, int64_t n) {
  // [solution: about 2 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[n - 1 - i] = x[i];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void reverse(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  reverse_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                   ladder::current_stream(x)>>>(x.const_data_ptr<float>(),
                                                out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("reverse(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("reverse", TORCH_BOX(&reverse));
}
