// wrong/fused_muladd.cu: fused multiply-adds with one fault each, for lesson 03. Do not
// use.
//
//   muladd_any_layout   takes strided tensors and reads them as if they were contiguous
//   muladd_no_tail      takes 4 elements at a time and forgets the elements that are
//                       left
//   muladd_rows         correct, but its input is rows of (a, b, c), so a warp's loads
//                       are not coalesced
//
// Each computes a * b + c for float32 tensors of one shape, in 16 bytes moved per
// element.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;

// -------------------------------------------------------------------------------------
// Kernels. a, b, c, out: n floats each.

__global__ void muladd_kernel(const float* a, const float* b, const float* c,
                              float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] * b[i] + c[i];
  }
}

__global__ void muladd_no_tail_kernel(const float* a, const float* b, const float* c,
                                      float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4 x = reinterpret_cast<const float4*>(a)[i];
    float4 y = reinterpret_cast<const float4*>(b)[i];
    float4 z = reinterpret_cast<const float4*>(c)[i];
    reinterpret_cast<float4*>(out)[i] =
        make_float4(x.x * y.x + z.x, x.y * y.y + z.y, x.z * y.z + z.z, x.w * y.w + z.w);
  }
}

// rows: n rows of a, b, c.
__global__ void muladd_rows_kernel(const float* rows, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = rows[3 * i] * rows[3 * i + 1] + rows[3 * i + 2];
  }
}

// -------------------------------------------------------------------------------------
// Launchers

Tensor muladd_any_layout(const Tensor& a, const Tensor& b, const Tensor& c) {
  STD_TORCH_CHECK(a.is_cuda(), "a must be a CUDA tensor");
  STD_TORCH_CHECK(a.scalar_type() == ScalarType::Float, "a must be float32");
  ladder::check_same(a, "a", b, "b");
  ladder::check_same(a, "a", c, "c");
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::new_empty(a, a.sizes());
  int64_t n = a.numel();
  if (n == 0) return out;
  muladd_kernel<<<ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor muladd_no_tail(const Tensor& a, const Tensor& b, const Tensor& c) {
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(b, "b", ScalarType::Float);
  ladder::check_input(c, "c", ScalarType::Float);
  ladder::check_same(a, "a", b, "b");
  ladder::check_same(a, "a", c, "c");
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  int64_t n = a.numel();
  if (n == 0) return out;
  muladd_no_tail_kernel<<<ceil_div(n, 4 * kThreads), kThreads, 0,
                          ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor muladd_rows(const Tensor& rows) {
  ladder::check_input(rows, "rows", ScalarType::Float);
  STD_TORCH_CHECK(rows.dim() == 2 && rows.size(1) == 3,
                  "rows must have the shape [n, 3]");
  auto guard = ladder::on_device_of(rows);
  int64_t n = rows.size(0);
  Tensor out = torch::stable::new_empty(rows, {n});
  if (n == 0) return out;
  muladd_rows_kernel<<<ceil_div(n, kThreads), kThreads, 0,
                       ladder::current_stream(rows)>>>(
      rows.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("muladd_any_layout(Tensor a, Tensor b, Tensor c) -> Tensor");
  m.def("muladd_no_tail(Tensor a, Tensor b, Tensor c) -> Tensor");
  m.def("muladd_rows(Tensor rows) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("muladd_any_layout", TORCH_BOX(&muladd_any_layout));
  m.impl("muladd_no_tail", TORCH_BOX(&muladd_no_tail));
  m.impl("muladd_rows", TORCH_BOX(&muladd_rows));
}
