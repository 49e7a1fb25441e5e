// wrong/bias_gelu_float4.cu: two float4 kernels with a published bug each, for lesson
// 06. Do not use.
//
//   bias_gelu_past_end    the guard tests the first of four elements, the access
//                         touches all four
//   bias_gelu_truncated   columns / 4 vectors per row, rounded down: correct only if 4
//                         divides the columns
//
// Neither checks where x begins. Each computes gelu_tanh(x + bias) for float32, in 8
// bytes moved per element.

#include <torch/csrc/stable/library.h>

#include "bias_gelu.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;

// -------------------------------------------------------------------------------------
// Kernels. x, out: n floats, row by row; bias: columns floats.

__device__ float4 bias_gelu(float4 x, const float* bias, int64_t column,
                            int64_t columns) {
  return make_float4(ladder::gelu_tanh(x.x + bias[column]),
                     ladder::gelu_tanh(x.y + bias[(column + 1) % columns]),
                     ladder::gelu_tanh(x.z + bias[(column + 2) % columns]),
                     ladder::gelu_tanh(x.w + bias[(column + 3) % columns]));
}

// Each thread takes 4 elements if the first of them is inside x.
__global__ void bias_gelu_past_end_kernel(const float* x, const float* bias, float* out,
                                          int64_t n, int64_t columns) {
  int64_t i = 4 * (int64_t(blockIdx.x) * blockDim.x + threadIdx.x);
  if (i < n) {
    float4 v = *reinterpret_cast<const float4*>(x + i);
    *reinterpret_cast<float4*>(out + i) = bias_gelu(v, bias, i % columns, columns);
  }
}

__global__ void bias_gelu_truncated_kernel(const float4* x, const float* bias,
                                           float4* out, int64_t rows, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, row_vectors = columns / 4;
  if (i < rows * row_vectors) {
    out[i] = bias_gelu(x[i], bias, 4 * (i % row_vectors), columns);
  }
}

// -------------------------------------------------------------------------------------
// Launchers

Tensor bias_gelu_past_end(const Tensor& x, const Tensor& bias) {
  int64_t columns = ladder::check_x_and_bias(x, bias).columns, n = x.numel();
  ladder::check_input(x, "x", ScalarType::Float);
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (n == 0) return out;
  bias_gelu_past_end_kernel<<<ceil_div(n, 4 * kThreads), kThreads, 0,
                              ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), bias.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), n, columns);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor bias_gelu_truncated(const Tensor& x, const Tensor& bias) {
  ladder::Matrix m = ladder::check_x_and_bias(x, bias);
  ladder::check_input(x, "x", ScalarType::Float);
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  int64_t vectors = m.rows * (m.columns / 4);
  if (vectors == 0) return out;
  bias_gelu_truncated_kernel<<<ceil_div(vectors, kThreads), kThreads, 0,
                               ladder::current_stream(x)>>>(
      reinterpret_cast<const float4*>(x.const_data_ptr<float>()),
      bias.const_data_ptr<float>(),
      reinterpret_cast<float4*>(out.mutable_data_ptr<float>()), m.rows, m.columns);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("bias_gelu_past_end(Tensor x, Tensor bias) -> Tensor");
  m.def("bias_gelu_truncated(Tensor x, Tensor bias) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("bias_gelu_past_end", TORCH_BOX(&bias_gelu_past_end));
  m.impl("bias_gelu_truncated", TORCH_BOX(&bias_gelu_truncated));
}
