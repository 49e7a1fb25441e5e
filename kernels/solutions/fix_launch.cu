// fix_launch.cu: An error at somebody else's door. Exercise 5 of lesson 13, about 10 minutes.
//
// `out = factor * x`, with as many threads per block as the caller wants. With 2,048
// threads the call returns as if all were well, `out` keeps its old values, and the
// next call, which is right, raises `invalid configuration argument`. The kernel is
// correct; its launch is not. Fix it, so that a launch that fails raises in its own
// call, and the calls after it work.
//
// Check this file with: python -m helpers check fix_launch
//
// [hints]
// - A launch returns nothing. Its error waits until the next check asks for it: which
//   launch does this check ask about?
// - STD_CUDA_KERNEL_LAUNCH_CHECK() raises if a launch before it failed, and clears the
//   error.
// - Refusing 2,048 threads is not enough for every launch that can fail. Two lines in
//   another order are.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

// -------------------------------------------------------------------------------------
// Kernel

__global__ void fix_launch_kernel(const float* x, float factor, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * factor;
}

// -------------------------------------------------------------------------------------
// Launcher

// [cell]
// x, out: n > 0 floats each. Launches the kernel with `threads` threads per block. This
// function has a bug.
void start(const float* x, float factor, float* out, int64_t n, int64_t threads,
           cudaStream_t stream) {
  // [broken]
  // STD_CUDA_KERNEL_LAUNCH_CHECK();
  // fix_launch_kernel<<<ceil_div(n, threads), threads, 0, stream>>>(x, factor, out, n);
  // [end]
  // [solution: about 2 lines]
  fix_launch_kernel<<<ceil_div(n, threads), threads, 0, stream>>>(x, factor, out, n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  // [end]
}
// [end]

void fix_launch(const Tensor& x, double factor, int64_t threads, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  STD_TORCH_CHECK(threads >= 1, "threads must be 1 or more, got ", threads);
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  start(x.const_data_ptr<float>(), float(factor), out.mutable_data_ptr<float>(), n,
        threads, ladder::current_stream(x));
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("fix_launch(Tensor x, float factor, int threads, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("fix_launch", TORCH_BOX(&fix_launch));
}
