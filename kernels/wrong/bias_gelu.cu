// wrong/bias_gelu.cu: two wrong ways to add up grad_bias, for lesson 04. Do not use.
//
//   bias_gelu_backward_racing   all threads of a column add to one element and
//                               overwrite each other's sums
//   bias_gelu_backward_atomic   no sum is lost, but the order of the additions, and so
//   the last bits, are left to chance
//
// Each returns grad_x and grad_bias of gelu_tanh(x + bias), float32: 12 bytes per
// element, plus the traffic of the sums.

#include <torch/csrc/stable/library.h>

#include <tuple>

#include "bias_gelu.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;

// -------------------------------------------------------------------------------------
// Kernels. grad, x, grad_x: n floats, row by row; bias, grad_bias: columns floats.
// grad_bias begins as zeros.

__global__ void backward_racing_kernel(const float* grad, const float* x,
                                       const float* bias, float* grad_x,
                                       float* grad_bias, int64_t n, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t column = i % columns;
  grad_x[i] = grad[i] * ladder::gelu_tanh_slope(x[i] + bias[column]);
  grad_bias[column] += grad_x[i];
}

__global__ void backward_atomic_kernel(const float* grad, const float* x,
                                       const float* bias, float* grad_x,
                                       float* grad_bias, int64_t n, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t column = i % columns;
  grad_x[i] = grad[i] * ladder::gelu_tanh_slope(x[i] + bias[column]);
  atomicAdd(&grad_bias[column], grad_x[i]);
}

// -------------------------------------------------------------------------------------
// Launchers

struct Operands {
  const float *grad, *x, *bias;
  float *grad_x, *grad_bias;
  int64_t n, columns;
};

// Checks the arguments, makes the outputs, with zeros in grad_bias, and calls
// launch(operands, blocks, stream).
template <typename Launch>
std::tuple<Tensor, Tensor> checked(const Tensor& grad, const Tensor& x,
                                   const Tensor& bias, Launch launch) {
  int64_t columns = ladder::check_backward(grad, x, bias).columns, n = x.numel();
  ladder::check_input(x, "x", ScalarType::Float);
  auto guard = ladder::on_device_of(x);
  cudaStream_t stream = ladder::current_stream(x);
  Tensor grad_x = torch::stable::empty_like(x),
         grad_bias = torch::stable::empty_like(bias);
  STD_CUDA_CHECK(cudaMemsetAsync(grad_bias.mutable_data_ptr<float>(), 0,
                                 columns * sizeof(float), stream));
  if (n == 0) return {grad_x, grad_bias};
  launch(Operands{grad.const_data_ptr<float>(), x.const_data_ptr<float>(),
                  bias.const_data_ptr<float>(), grad_x.mutable_data_ptr<float>(),
                  grad_bias.mutable_data_ptr<float>(), n, columns},
         ladder::ceil_div(n, kThreads), stream);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_x, grad_bias};
}

std::tuple<Tensor, Tensor> bias_gelu_backward_racing(const Tensor& grad,
                                                     const Tensor& x,
                                                     const Tensor& bias) {
  return checked(grad, x, bias, [](Operands o, int64_t blocks, cudaStream_t stream) {
    backward_racing_kernel<<<blocks, kThreads, 0, stream>>>(
        o.grad, o.x, o.bias, o.grad_x, o.grad_bias, o.n, o.columns);
  });
}

std::tuple<Tensor, Tensor> bias_gelu_backward_atomic(const Tensor& grad,
                                                     const Tensor& x,
                                                     const Tensor& bias) {
  return checked(grad, x, bias, [](Operands o, int64_t blocks, cudaStream_t stream) {
    backward_atomic_kernel<<<blocks, kThreads, 0, stream>>>(
        o.grad, o.x, o.bias, o.grad_x, o.grad_bias, o.n, o.columns);
  });
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "bias_gelu_backward_racing(Tensor grad, Tensor x, Tensor bias) -> (Tensor, "
      "Tensor)");
  m.def(
      "bias_gelu_backward_atomic(Tensor grad, Tensor x, Tensor bias) -> (Tensor, "
      "Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("bias_gelu_backward_racing", TORCH_BOX(&bias_gelu_backward_racing));
  m.impl("bias_gelu_backward_atomic", TORCH_BOX(&bias_gelu_backward_atomic));
}
