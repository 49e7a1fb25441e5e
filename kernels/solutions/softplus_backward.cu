// softplus_backward.cu: The slope of softplus. Exercise 1 of lesson 04, about 5 minutes.
//
// `softplus(x) = log(1 + exp(x))` is a ReLU without the corner. From `grad`, the
// gradient of its result, compute `grad_x[i]`, which is `grad[i]` times the slope of
// softplus at `x[i]`. First derive the slope on paper: it is a function that you know.
// The result must be right for every x: `exp(100)` is infinite in float32, but the
// slope is 1.
//
// Check this file with: python -m helpers check softplus_backward
//
// [hints]
// - By the chain rule the slope is exp(x) / (1 + exp(x)).
// - Infinity divided by infinity is NaN. Divide numerator and denominator by exp(x).
// - The slope is sigmoid(x) = 1 / (1 + exp(-x)). For x = -100 the denominator is
//   infinite, and 1 / infinity is 0, as it should be.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// grad, x, grad_x: n floats each. Thread i of the grid owns element i.
__global__ void softplus_backward_kernel(const float* grad, const float* x,
                                         float* grad_x, int64_t n) {
  // [solution: about 2 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) grad_x[i] = grad[i] / (1 + expf(-x[i]));
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void softplus_backward(const Tensor& grad, const Tensor& x, Tensor grad_x) {
  ladder::check_input(grad, "grad", torch::headeronly::ScalarType::Float);
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(grad_x, "grad_x", torch::headeronly::ScalarType::Float);
  ladder::check_same(grad, "grad", x, "x");
  ladder::check_same(grad_x, "grad_x", x, "x");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  softplus_backward_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                             ladder::current_stream(x)>>>(
      grad.const_data_ptr<float>(), x.const_data_ptr<float>(),
      grad_x.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("softplus_backward(Tensor grad, Tensor x, Tensor(a!) grad_x) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("softplus_backward", TORCH_BOX(&softplus_backward));
}
