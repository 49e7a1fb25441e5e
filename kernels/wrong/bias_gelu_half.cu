// wrong/bias_gelu_half.cu: two kernels that compute in half where float is needed, for
// lesson 05. Do not use.
//
//   bias_gelu_in_half    gelu_tanh(x + bias) with the exponential in half: it
//                        overflows, and infinity / infinity is NaN
//   column_sum_in_half   the sums over the rows of a matrix, kept in half: they stop
//                        growing
//
// float16 only: 4 and 2 bytes moved per element.

#include <cuda_fp16.h>
#include <torch/csrc/stable/library.h>

#include "bias_gelu.h"

using ladder::ceil_div;
using torch::headeronly::Half;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;

// -------------------------------------------------------------------------------------
// Kernels

// tanh(u) = (exp(2u) - 1) / (exp(2u) + 1).
__global__ void bias_gelu_in_half_kernel(const __half* x, const __half* bias,
                                         __half* out, int64_t n, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half one = __float2half(1.0f), half = __float2half(0.5f);
  __half z = __hadd(x[i], bias[i % columns]);
  __half cube = __hmul(__hmul(z, z), z);
  __half u =
      __hmul(__float2half(0.79788456f), __hfma(__float2half(0.044715f), cube, z));
  __half e = hexp(__hadd(u, u));
  __half t = __hdiv(__hsub(e, one), __hadd(e, one));
  out[i] = __hmul(__hmul(half, z), __hadd(one, t));
}

// Thread c adds up column c.
__global__ void column_sum_in_half_kernel(const __half* x, __half* out, int64_t rows,
                                          int64_t columns) {
  int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  __half sum = __float2half(0.0f);
  for (int64_t row = 0; row < rows; ++row) sum = __hadd(sum, x[row * columns + column]);
  out[column] = sum;
}

// -------------------------------------------------------------------------------------
// Launchers

const __half* input(const Tensor& t) {
  return reinterpret_cast<const __half*>(t.const_data_ptr<Half>());
}
__half* output(Tensor& t) {
  return reinterpret_cast<__half*>(t.mutable_data_ptr<Half>());
}

Tensor bias_gelu_in_half(const Tensor& x, const Tensor& bias) {
  int64_t columns = ladder::check_x_and_bias(x, bias).columns, n = x.numel();
  ladder::check_input(x, "x", ScalarType::Half);
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (n == 0) return out;
  bias_gelu_in_half_kernel<<<ceil_div(n, kThreads), kThreads, 0,
                             ladder::current_stream(x)>>>(input(x), input(bias),
                                                          output(out), n, columns);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor column_sum_in_half(const Tensor& x) {
  ladder::check_input(x, "x", ScalarType::Half);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::new_empty(x, {x.size(1)});
  if (x.size(1) == 0) return out;
  column_sum_in_half_kernel<<<ceil_div(x.size(1), kThreads), kThreads, 0,
                              ladder::current_stream(x)>>>(input(x), output(out),
                                                           x.size(0), x.size(1));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("bias_gelu_in_half(Tensor x, Tensor bias) -> Tensor");
  m.def("column_sum_in_half(Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("bias_gelu_in_half", TORCH_BOX(&bias_gelu_in_half));
  m.impl("column_sum_in_half", TORCH_BOX(&column_sum_in_half));
}
