// fix_bounds.cu: A bug without a wrong number. Exercise 1 of lesson 13, about 5 minutes.
//
// `out[i] = x[i + 1] - x[i]`, and the last element of `out` is 0. Every number comes
// out right, on every size that was tried. But when the tensor is the last one in its
// page, the process ends with an illegal memory access. The X-ray names a line even
// where the values are right. Find the access and fix it; change as little as you can.
//
// Check this file with: python -m helpers check fix_bounds
//
// [hints]
// - The check's verdict is the X-ray's: run the cell with any small edit, such as a
//   comment, and read which line it names, and which thread.
// - The guard protects out[i]. Which other element does a thread read, and does it
//   exist for the last thread?
// - A condition must stand before the read that it protects. Choosing the result
//   afterwards is too late: the read has happened.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, out: n floats each. Thread i of the grid owns out[i]. This kernel has a bug.
__global__ void fix_bounds_kernel(const float* x, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // [broken]
  // float next = x[i + 1];
  // [end]
  // [solution: about 1 line]
  float next = i + 1 < n ? x[i + 1] : 0;
  // [end]
  out[i] = i + 1 < n ? next - x[i] : 0;
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void fix_bounds(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  fix_bounds_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                      ladder::current_stream(x)>>>(x.const_data_ptr<float>(),
                                                   out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("fix_bounds(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("fix_bounds", TORCH_BOX(&fix_bounds));
}
