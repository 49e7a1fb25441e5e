// clamp_nan.cu: Clamp, and keep NaN. Exercise 1 of lesson 02, about 5 minutes.
//
// `torch.clamp(x, low, high)`: an element below `low` becomes `low`, an element above
// `high` becomes `high`, and all others stay as they are. A NaN is neither below nor
// above anything, so it stays NaN: an operator that swallows it hides the place where a
// model went wrong. If `low > high`, every other element becomes `high`. The kernel
// moves 8 bytes per element.
//
// Check this file with: python -m helpers check clamp_nan
//
// [hints]
// - Every comparison with NaN is false. Which branch of `condition ? a : b` must be
//   x[i] itself, so that NaN gets there?
// - fminf and fmaxf return the other argument if one is NaN: fminf(fmaxf(NaN, low),
//   high) is low.
// - Apply low first and high second, to the result of the first: then low > high gives
//   high.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, out: n floats each.
__global__ void clamp_nan_kernel(const float* x, float low, float high, float* out,
                                 int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // [solution: about 2 lines]
  float raised = x[i] < low ? low : x[i];
  out[i] = raised > high ? high : raised;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void clamp_nan(const Tensor& x, double low, double high, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  clamp_nan_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                     ladder::current_stream(x)>>>(x.const_data_ptr<float>(), float(low),
                                                  float(high),
                                                  out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("clamp_nan(Tensor x, float low, float high, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("clamp_nan", TORCH_BOX(&clamp_nan));
}
