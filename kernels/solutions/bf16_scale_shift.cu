// bf16_scale_shift.cu: Scale and shift, rounded once. Exercise 1 of lesson 05, about 5 minutes.
//
// `out[i] = scale * x[i] + shift` for n elements of bfloat16, where scale and shift are
// floats. A bfloat16 keeps 8 binary digits, so each rounding costs up to 0.4%: compute
// in float and round once, to nearest, when you store the result. The kernel moves 4
// bytes per element.
//
// Check this file with: python -m helpers check bf16_scale_shift
//
// [hints]
// - float(x[i]) is exact: a bfloat16 is the upper half of a float.
// - BFloat16(f) rounds a float to the nearest bfloat16. Cutting off the lower 16 bits
//   would round towards 0.
// - BFloat16(scale), or a product that is stored as a BFloat16 before shift is added,
//   is one rounding too many.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::headeronly::BFloat16;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, out: n elements each. Thread i of the grid owns element i.
__global__ void bf16_scale_shift_kernel(const BFloat16* x, float scale, float shift,
                                        BFloat16* out, int64_t n) {
  // [solution: about 2 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = BFloat16(scale * float(x[i]) + shift);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void bf16_scale_shift(const Tensor& x, double scale, double shift, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::BFloat16);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::BFloat16);
  ladder::check_same(x, "x", out, "out");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  bf16_scale_shift_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                            ladder::current_stream(x)>>>(
      x.const_data_ptr<BFloat16>(), float(scale), float(shift),
      out.mutable_data_ptr<BFloat16>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("bf16_scale_shift(Tensor x, float scale, float shift, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("bf16_scale_shift", TORCH_BOX(&bf16_scale_shift));
}
