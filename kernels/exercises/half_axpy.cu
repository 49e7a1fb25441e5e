// half_axpy.cu: Two halves at a time. Exercise 3 of lesson 05, about 15 minutes.
//
// `out[i] = a * x[i] + y[i]` for n elements of float16 and a float a, as in an optimiser's step. A thread owns two
// neighbours, which it reads and writes as one `__half2` of 4 bytes; if n is odd, the last thread owns one. Compute in
// float and round once: a half need not be able to represent a.
//
// Check this file with: python -m helpers check half_axpy

#include <cuda_fp16.h>

#include <torch/csrc/stable/library.h>

#include "launch.h"
#include "vector.h"

using torch::headeronly::Half;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// ---------------------------------------------------------------------------------------------------------------------
// Kernel

// x, y, out: n halves each, from an address that is a multiple of 4. Thread i owns the elements 2 i and 2 i + 1.
__global__ void half_axpy_kernel(float a, const __half* x, const __half* y, __half* out, int64_t n) {
  // YOUR CODE HERE: about 9 lines
}

// ---------------------------------------------------------------------------------------------------------------------
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
  STD_TORCH_CHECK(
      ladder::all_aligned_to(4, px, py, po),
      "x, y and out must begin at multiples of 4 bytes, but one is a slice from an odd index; pass a clone()");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  half_axpy_kernel<<<ladder::ceil_div(ladder::ceil_div(n, 2), kThreads), kThreads, 0, ladder::current_stream(x)>>>(
      float(a), px, py, po, n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("half_axpy(float a, Tensor x, Tensor y, Tensor(a!) out) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("half_axpy", TORCH_BOX(&half_axpy)); }
