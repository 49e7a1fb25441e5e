// relu_backward.cu: The gradient of ReLU. Exercise 2 of lesson 02, about 10 minutes.
//
// `y = max(x, 0)` passes the gradient on where `x > 0` and stops it where `x <= 0`:
// `grad_x[i]` is 0 where `x[i] <= 0`, and `grad[i]` everywhere else. So a NaN in `x`,
// which is not `<= 0`, lets the gradient through, and an infinite gradient that is
// stopped gives 0: PyTorch does both. The kernel has one thread per element and moves
// 12 bytes per element.
//
// Check this file with: python -m helpers check relu_backward
//
// [hints]
// - Index and guard are the same as in a vector add. The rest chooses between two
//   values; it does not compute with them.
// - Multiplying the gradient by 1 or 0 looks the same, until the gradient is infinite:
//   inf * 0 is NaN.
// - Every comparison with NaN is false. So 'x > 0 ? a : b' and 'x <= 0 ? b : a' differ,
//   and only where x is NaN.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// grad, x, grad_x: n floats each. grad is the gradient of y = max(x, 0); write the
// gradient of x to grad_x.
__global__ void relu_backward_kernel(const float* grad, const float* x, float* grad_x,
                                     int64_t n) {
  // [solution: about 3 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  grad_x[i] = x[i] <= 0 ? 0 : grad[i];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void relu_backward(const Tensor& grad, const Tensor& x, Tensor grad_x) {
  ladder::check_input(grad, "grad", torch::headeronly::ScalarType::Float);
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(grad_x, "grad_x", torch::headeronly::ScalarType::Float);
  ladder::check_same(grad, "grad", x, "x");
  ladder::check_same(grad_x, "grad_x", x, "x");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  relu_backward_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                         ladder::current_stream(x)>>>(
      grad.const_data_ptr<float>(), x.const_data_ptr<float>(),
      grad_x.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("relu_backward(Tensor grad, Tensor x, Tensor(a!) grad_x) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("relu_backward", TORCH_BOX(&relu_backward));
}
