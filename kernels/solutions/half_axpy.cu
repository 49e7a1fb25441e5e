// half_axpy.cu: Two halves at a time. Exercise 3 of lesson 05, about 15 minutes.
//
// `out[i] = a * x[i] + y[i]` for n elements of float16 and a float a, as in an
// optimiser's step. A thread owns two neighbours, which it reads and writes as one
// `__half2` of 4 bytes; if n is odd, the last thread owns one. Compute in float
// (`__half22float2` and `__float22half2_rn` convert two, `__half2float` and
// `__float2half` one) and round once: a half need not be able to represent a.
//
// Check this file with: python -m helpers check half_axpy
//
// [hints]
// - reinterpret_cast<const __half2*>(x)[i] reads the elements 2 i and 2 i + 1 at once.
//   For which i is that allowed, with n elements?
// - A float2, which __half22float2 returns, has members x and y; make_float2(x, y)
//   makes one.
// - __hfma2(a2, x2, y2) rounds its result once, but a would have to be rounded to a
//   half first.
// [end]

#include <cuda_fp16.h>

#include <torch/csrc/stable/library.h>

#include "launch.h"
#include "vector.h"

using torch::headeronly::Half;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, y, out: n halves each, from an address that is a multiple of 4. Thread i owns the
// elements 2 i and 2 i + 1.
__global__ void half_axpy_kernel(float a, const __half* x, const __half* y, __half* out,
                                 int64_t n) {
  // [solution: about 9 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (2 * i + 1 < n) {
    float2 u = __half22float2(reinterpret_cast<const __half2*>(x)[i]);
    float2 v = __half22float2(reinterpret_cast<const __half2*>(y)[i]);
    float2 sum = make_float2(a * u.x + v.x, a * u.y + v.y);
    reinterpret_cast<__half2*>(out)[i] = __float22half2_rn(sum);
  } else if (2 * i < n) {
    out[2 * i] = __float2half(a * __half2float(x[2 * i]) + __half2float(y[2 * i]));
  }
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void half_axpy(double a, const Tensor& x, const Tensor& y, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Half);
  ladder::check_input(y, "y", torch::headeronly::ScalarType::Half);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Half);
  ladder::check_same(x, "x", y, "y");
  ladder::check_same(x, "x", out, "out");
  auto* px = reinterpret_cast<const __half*>(x.const_data_ptr<Half>());
  auto* py = reinterpret_cast<const __half*>(y.const_data_ptr<Half>());
  auto* po = reinterpret_cast<__half*>(out.mutable_data_ptr<Half>());
  STD_TORCH_CHECK(ladder::all_aligned_to(4, px, py, po),
                  "x, y and out must begin at multiples of 4 bytes, but one is a slice "
                  "from an odd index; pass a clone()");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  half_axpy_kernel<<<ladder::ceil_div(ladder::ceil_div(n, 2), kThreads), kThreads, 0,
                     ladder::current_stream(x)>>>(float(a), px, py, po, n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("half_axpy(float a, Tensor x, Tensor y, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("half_axpy", TORCH_BOX(&half_axpy));
}
