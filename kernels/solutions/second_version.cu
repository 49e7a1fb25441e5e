// second_version.cu: A second version that breaks nobody. Exercise 1 of lesson 14, about 10 minutes.
//
// Version 1 of this operator returned `factor * x`, with the schema `(Tensor x, float
// factor) -> Tensor`. Version 2 returns `factor * x + shift`. Models that were saved
// with version 1 call it with two arguments, and must get what they got. Write the
// schema of version 2: `shift` is 0 unless it is given, and can only be given by name,
// so that version 3 may still add arguments before it. Schemas say both as Python does.
//
// Check this file with: python -m helpers check second_version
//
// [hints]
// - A schema is text: the name, the arguments with their types in parentheses, an
//   arrow, the types of the results. The types are the dispatcher's: a C++ double is
//   float there, an int64_t is int.
// - An argument gets its default as in Python: float shift=0.0.
// - As in Python, a * among the arguments makes all that follow it keyword-only. Their
//   order in C++ stays the same.
// [end]

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel and launcher

__global__ void second_version_kernel(const float* x, float factor, float shift,
                                      float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * x[i] + shift;
}

Tensor second_version(const Tensor& x, double factor, double shift) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  int64_t n = x.numel();
  if (n == 0) return out;
  second_version_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                          ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), float(factor), float(shift),
      out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration

// [cell]
// The schema: what callers may write, today and in models that were saved with version
// 1.
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  // Breaks version 1.
  const char* schema = "second_version(Tensor x, float factor, float shift) -> Tensor";
  // [solution: about 1 line]
  schema = "second_version(Tensor x, float factor, *, float shift=0.0) -> Tensor";
  // [end]
  m.def(schema);
}
// [end]

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("second_version", TORCH_BOX(&second_version));
}
