// bias_relu_backward.cu: Back through a bias and a ReLU. Exercise 2 of lesson 04, about 10 minutes.
//
// Forward, `y = max(x + bias, 0)`, with one bias per column. Only `x` and `bias` were
// kept, not their sum: the kernel adds them again, which costs an addition instead of a
// pass over memory. The gradient of x is 0 where `x + bias <= 0` and `grad` everywhere
// else, where the sum is NaN too. Thread i owns element i of the matrix.
//
// Check this file with: python -m helpers check bias_relu_backward
//
// [hints]
// - Matrices are stored row by row. From the index of an element, the remainder by
//   columns is its column.
// - Choose between 0 and grad; a product with 0 or 1 turns an infinite gradient into
//   NaN.
// - 'sum > 0 ? grad : 0' stops the gradient where the sum is NaN. Which comparison lets
//   it through?
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// grad, x, grad_x: n floats each, in rows of `columns`; bias: columns floats.
__global__ void bias_relu_backward_kernel(const float* grad, const float* x,
                                          const float* bias, float* grad_x, int64_t n,
                                          int64_t columns) {
  // [solution: about 3 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  grad_x[i] = x[i] + bias[i % columns] <= 0 ? 0 : grad[i];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void bias_relu_backward(const Tensor& grad, const Tensor& x, const Tensor& bias,
                        Tensor grad_x) {
  ladder::check_input(grad, "grad", torch::headeronly::ScalarType::Float);
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(bias, "bias", torch::headeronly::ScalarType::Float);
  ladder::check_input(grad_x, "grad_x", torch::headeronly::ScalarType::Float);
  ladder::check_same(grad, "grad", x, "x");
  ladder::check_same(grad_x, "grad_x", x, "x");
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  STD_TORCH_CHECK(bias.dim() == 1 && bias.size(0) == x.size(1),
                  "bias must have one element for each of the ", x.size(1),
                  " columns of x, got shape ", ladder::shape_of(bias));
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  bias_relu_backward_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                              ladder::current_stream(x)>>>(
      grad.const_data_ptr<float>(), x.const_data_ptr<float>(),
      bias.const_data_ptr<float>(), grad_x.mutable_data_ptr<float>(), n, x.size(1));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "bias_relu_backward(Tensor grad, Tensor x, Tensor bias, Tensor(a!) grad_x) -> "
      "()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("bias_relu_backward", TORCH_BOX(&bias_relu_backward));
}
