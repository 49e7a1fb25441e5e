// gelu_erf.cu: GELU as it is defined. Exercise 3 of lesson 04, about 15 minutes.
//
// The lesson's tanh form approximates `gelu(x) = x * P(x)`, where `P(x) = (1 + erf(x /
// sqrt(2))) / 2` is the probability that a normally distributed number is smaller than
// x. Write `out = gelu(x)` and its gradient `grad_x`; the derivative of P is `p(x) =
// exp(-x * x / 2) / sqrt(2 * pi)`. The results must keep their digits where x is
// negative and P is tiny.
//
// Check this file with: python -m helpers check gelu_erf
//
// [hints]
// - By the product rule the derivative of gelu is P(x) + x * p(x).
// - For x = -5 the sum 1 + erf(x / sqrt(2)) is 5.7e-7, but neighbouring floats just
//   below 1 are 6e-8 apart, so one digit is left. Avoid the subtraction.
// - The function erfcf computes erfc(t) = 1 - erf(t) with all its digits, and erf(-t) =
//   -erf(t). So P(x) is erfcf(-x / sqrt(2)) / 2.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;                   // per block
constexpr float kRootHalf = 0.70710678118f;     // 1 / sqrt(2)
constexpr float kInverseRoot = 0.39894228040f;  // 1 / sqrt(2 * pi)

// -------------------------------------------------------------------------------------
// Kernels

// [cell]
// x, out: n floats each. Thread i of the grid owns element i. kRootHalf is 1 / sqrt(2).
__global__ void gelu_erf_kernel(const float* x, float* out, int64_t n) {
  // [solution: about 2 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * (0.5f * erfcf(-x[i] * kRootHalf));
  // [end]
}

// grad, x, grad_x: n floats each. kInverseRoot is 1 / sqrt(2 * pi).
__global__ void gelu_erf_backward_kernel(const float* grad, const float* x,
                                         float* grad_x, int64_t n) {
  // [solution: about 5 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float z = x[i];
  float slope = 0.5f * erfcf(-z * kRootHalf) + z * kInverseRoot * expf(-0.5f * z * z);
  grad_x[i] = grad[i] * slope;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void gelu_erf(const Tensor& grad, const Tensor& x, Tensor out, Tensor grad_x) {
  for (const auto& [tensor, name] :
       {std::pair(&grad, "grad"), {&x, "x"}, {&out, "out"}, {&grad_x, "grad_x"}}) {
    ladder::check_input(*tensor, name, torch::headeronly::ScalarType::Float);
    ladder::check_same(*tensor, name, x, "x");
  }
  auto guard = ladder::on_device_of(x);
  cudaStream_t stream = ladder::current_stream(x);
  int64_t n = x.numel();
  if (n == 0) return;
  gelu_erf_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0, stream>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  gelu_erf_backward_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0, stream>>>(
      grad.const_data_ptr<float>(), x.const_data_ptr<float>(),
      grad_x.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("gelu_erf(Tensor grad, Tensor x, Tensor(a!) out, Tensor(b!) grad_x) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("gelu_erf", TORCH_BOX(&gelu_erf));
}
