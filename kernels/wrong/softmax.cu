// wrong/softmax.cu: two softmaxes with one fault each, for lesson 15. Do not use.
//
//   softmax_no_max    does not subtract the row's maximum: exp(x) overflows from x =
//                     88.8
//   softmax_masked    lets the lanes past a short row return, and then shuffles with
//                     these lanes
//
// Each computes softmax over the last dimension of float32 rows of at most 32 columns:
// 8 bytes moved per element.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

#include "launch.h"

using torch::stable::Tensor;

constexpr unsigned kAll = 0xffffffffu;

// -------------------------------------------------------------------------------------
// Kernels: a warp per row. x, out: gridDim.x rows of `columns` elements, at most 32.

__device__ float sum_over_warp(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(kAll, value, offset);
  return value;
}

__global__ void softmax_no_max_kernel(const float* x, float* out, int columns) {
  int64_t at = int64_t(blockIdx.x) * columns + threadIdx.x;
  bool inside = threadIdx.x < columns;
  float power = inside ? expf(x[at]) : 0;
  float sum = sum_over_warp(power);
  if (inside) out[at] = power / sum;
}

__global__ void softmax_masked_kernel(const float* x, float* out, int columns) {
  int64_t at = int64_t(blockIdx.x) * columns + threadIdx.x;
  if (threadIdx.x >= columns) return;
  float power = expf(x[at]);
  out[at] = power / sum_over_warp(power);
}

// -------------------------------------------------------------------------------------
// Launchers

Tensor checked_rows(const Tensor& x) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2 && x.size(1) >= 1 && x.size(1) <= 32,
                  "x must be a matrix of 1 to 32 columns, got shape ",
                  ladder::shape_of(x));
  return torch::stable::empty_like(x);
}

Tensor softmax_no_max(const Tensor& x) {
  Tensor out = checked_rows(x);
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return out;
  softmax_no_max_kernel<<<x.size(0), 32, 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(1));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor softmax_masked(const Tensor& x) {
  Tensor out = checked_rows(x);
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return out;
  softmax_masked_kernel<<<x.size(0), 32, 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(1));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("softmax_no_max(Tensor x) -> Tensor");
  m.def("softmax_masked(Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("softmax_no_max", TORCH_BOX(&softmax_no_max));
  m.impl("softmax_masked", TORCH_BOX(&softmax_masked));
}
