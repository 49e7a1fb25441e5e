// roll.cu: Roll a vector around. Exercise 3 of lesson 01, about 15 minutes.
//
// `out[(i + shift) mod n] = x[i]`, as `torch.roll(x, shift)` does: elements that leave
// at one end come in at the other. `shift` may be negative, and larger than n. Each
// thread owns the element of `out` that it writes, so it has to find out which element
// of `x` belongs there. The kernel moves 8 bytes per element.
//
// Check this file with: python -m helpers check roll
//
// [hints]
// - Solve i = (from + shift) mod n for from: which element moves to place i?
// - In C++, division rounds towards zero, so -1 % 5 is -1, not 4. The remainder of a
//   negative number is between -(n - 1) and 0: it takes one more step to become an
//   index.
// - shift % n makes any shift small: i - shift % n cannot overflow, whatever shift is.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, out: n floats each. Thread i of the grid writes out[i]; n > 0, and shift is any
// number.
__global__ void roll_kernel(const float* x, int64_t shift, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // [solution: about 3 lines]
  int64_t from = (i - shift % n) % n;  // rounded towards zero: -(n - 1) to n - 1
  if (from < 0) from += n;
  out[i] = x[from];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void roll(const Tensor& x, int64_t shift, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  roll_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                ladder::current_stream(x)>>>(x.const_data_ptr<float>(), shift,
                                             out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("roll(Tensor x, int shift, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("roll", TORCH_BOX(&roll));
}
