// float4_tails.cu: Four floats at a time, and the rest. Exercise 1 of lesson 06, about 10 minutes.
//
// `out[i] = factor * x[i]` for n floats anywhere in memory. If `x` and `out` both begin at a multiple of 16 bytes, the
// first threads move four neighbours each as one `float4`, and the next threads move the up to three elements that are
// left, one each. If either does not, as for `t[1:]`, no thread may use a `float4`: each moves one element.
//
// Check this file with: python -m helpers check float4_tails

#include <torch/csrc/stable/library.h>

#include "launch.h"
#include "vector.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// ---------------------------------------------------------------------------------------------------------------------
// Kernel

// How many threads move a float4 each, for n floats at x and at out.
int64_t count_vectors(const float* x, const float* out, int64_t n) {
  int64_t vectors = 0;
  // YOUR CODE HERE: about 1 line
  return vectors;
}

// x, out: n floats each. The first `vectors` threads own four floats each, the threads after them one float each.
__global__ void float4_tails_kernel(const float* x, float factor, float* out, int64_t n, int64_t vectors) {
  // YOUR CODE HERE: about 9 lines
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

void float4_tails(const Tensor& x, double factor, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  auto guard = ladder::on_device_of(x);
  const float* px = x.const_data_ptr<float>();
  float* po = out.mutable_data_ptr<float>();
  int64_t n = x.numel(), vectors = count_vectors(px, po, n), threads = n - 3 * vectors;
  if (n == 0) return;
  STD_TORCH_CHECK(vectors >= 0 && 4 * vectors <= n, "count_vectors says ", vectors, " for ", n, " elements");
  float4_tails_kernel<<<ladder::ceil_div(threads, kThreads), kThreads, 0, ladder::current_stream(x)>>>(
      px, float(factor), po, n, vectors);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("float4_tails(Tensor x, float factor, Tensor(a!) out) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("float4_tails", TORCH_BOX(&float4_tails)); }
