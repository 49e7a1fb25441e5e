// saturating_half.cu: To float16 without infinities. Exercise 2 of lesson 05, about 10 minutes.
//
// Convert n floats to float16, rounded to nearest. The largest finite float16 is
// 65,504; a plain conversion turns anything much larger into infinity, which no later
// step can undo. So values above 65,504 become 65,504, and values below -65,504 become
// -65,504: the values saturate. Infinities saturate too, but NaN stays NaN. The kernel
// moves 6 bytes per element.
//
// Check this file with: python -m helpers check saturating_half
//
// [hints]
// - Half(f) rounds a float to the nearest float16. Compare before you convert: a
//   float16 that is infinite no longer says how large the float was.
// - Comparisons choose, and NaN fails all of them. fminf and fmaxf would replace NaN by
//   the limit.
// - There is a limit on either side.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::headeronly::Half;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x: n floats; out: n halves. Thread i of the grid owns element i.
__global__ void saturating_half_kernel(const float* x, Half* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // [solution: about 4 lines]
  float value = x[i];
  if (value > 65504) value = 65504;
  if (value < -65504) value = -65504;
  out[i] = Half(value);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void saturating_half(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Half);
  ladder::check_same(x, "x", out, "out");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  saturating_half_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                           ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<Half>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("saturating_half(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("saturating_half", TORCH_BOX(&saturating_half));
}
