// float4_tails.cu: Four floats at a time, and the rest. Exercise 1 of lesson 06, about 10 minutes.
//
// `out[i] = factor * x[i]` for n floats anywhere in memory. If `x` and `out` both begin
// at a multiple of 16 bytes, the first threads move four neighbours each as one
// `float4`, and the next threads move the up to three elements that are left, one each.
// If either does not, as for `t[1:]`, no thread may use a `float4`: each moves one
// element.
//
// Check this file with: python -m helpers check float4_tails
//
// [hints]
// - ladder::all_aligned_to(16, p, q) says whether two pointers are multiples of 16.
// - reinterpret_cast<const float4*>(x)[i] reads the elements 4 i to 4 i + 3 at once. A
//   float4 has members x, y, z, w.
// - Thread i at or past `vectors` owns the single element 4 * vectors + (i - vectors),
//   if that exists. Without vectors it is element i.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"
#include "vector.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// How many threads move a float4 each, for n floats at x and at out.
int64_t count_vectors(const float* x, const float* out, int64_t n) {
  int64_t vectors = 0;
  // [solution: about 1 line]
  if (ladder::all_aligned_to(16, x, out)) vectors = n / 4;
  // [end]
  return vectors;
}

// x, out: n floats each. The first `vectors` threads own four floats each, the threads
// after them one float each.
__global__ void float4_tails_kernel(const float* x, float factor, float* out, int64_t n,
                                    int64_t vectors) {
  // [solution: about 9 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < vectors) {
    float4 v = reinterpret_cast<const float4*>(x)[i];
    v = make_float4(factor * v.x, factor * v.y, factor * v.z, factor * v.w);
    reinterpret_cast<float4*>(out)[i] = v;
  } else {
    int64_t j = 4 * vectors + (i - vectors);
    if (j < n) out[j] = factor * x[j];
  }
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
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
  STD_TORCH_CHECK(vectors >= 0 && 4 * vectors <= n, "count_vectors says ", vectors,
                  " for ", n, " elements");
  float4_tails_kernel<<<ladder::ceil_div(threads, kThreads), kThreads, 0,
                        ladder::current_stream(x)>>>(px, float(factor), po, n, vectors);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("float4_tails(Tensor x, float factor, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("float4_tails", TORCH_BOX(&float4_tails));
}
