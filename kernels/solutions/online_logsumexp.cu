// online_logsumexp.cu: Maximum and sum in one pass. Exercise 2 of lesson 07, about 30 minutes.
//
// `out[r] = log(sum over c of exp(x[r, c]))` for rows of any length, a warp each. To
// keep `exp` finite, subtract the row's maximum; but read each element once, so it is
// not known yet. Each lane keeps the largest value `m` so far, and the sum `s` of
// `exp(x - m)`; when m grows, rescale s. Then combine the lanes. As in PyTorch, a row
// of -inf or without elements gives -inf, one with inf gives inf, one with NaN gives
// NaN. The check counts reads.
//
// Check this file with: python -m helpers check online_logsumexp
//
// [hints]
// - Join two pairs (m1, s1) and (m2, s2): m is the larger of m1 and m2, and s = s1 *
//   exp(m1 - m) + s2 * exp(m2 - m). A new element x is the pair (x, 1); nothing is the
//   pair (-inf, 0).
// - inf - inf is NaN, and so is -inf + inf. Where m is infinite, let s be 1 without
//   computing exp: m + log(1) is m.
// - fmaxf(a, b) drops a NaN; a > b || isnan(a) ? a : b keeps it.
// - After five shuffles, by 16, 8, 4, 2 and 1 lanes, lane 0 holds the row's pair. All
//   lanes take part, also those that had no element. The result is m + log(s): -inf for
//   a row of -inf, +inf if there is a +inf.
// [end]

#include <torch/csrc/stable/library.h>

#include <cmath>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kWarp = 32;
// The mask of a shuffle in which all 32 lanes take part.
constexpr unsigned kAll = 0xffffffff;
constexpr int kRows = 4;  // rows of a block: one warp for each

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// A maximum, and the sum of exp(x - maximum) over the elements seen so far.
struct Pair {
  float m, s;
};

// The pair for the elements of both.
__device__ Pair join(Pair a, Pair b) {
  Pair both = a;  // not true
  // [solution: about 3 lines]
  float m = a.m > b.m || isnan(a.m) ? a.m : b.m;
  both = {m, 1};
  // inf - inf would be NaN.
  if (!isinf(m)) both.s = a.s * expf(a.m - m) + b.s * expf(b.m - m);
  // [end]
  return both;
}

// x: rows x columns floats; out: rows floats. A warp has a row.
__global__ void online_logsumexp_kernel(const float* x, float* out, int64_t rows,
                                        int64_t columns) {
  int lane = threadIdx.x % kWarp;
  int64_t row = int64_t(blockIdx.x) * kRows + threadIdx.x / kWarp;
  if (row >= rows) return;  // the whole warp leaves
  Pair p = {-INFINITY, 0};
  // [solution: about 8 lines]
  for (int64_t c = lane; c < columns; c += kWarp)
    p = join(p, {x[row * columns + c], 1});
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    Pair other = {__shfl_down_sync(kAll, p.m, distance),
                  __shfl_down_sync(kAll, p.s, distance)};
    p = join(p, other);
  }
  if (lane == 0) out[row] = p.m + logf(p.s);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void online_logsumexp(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  STD_TORCH_CHECK(out.dim() == 1 && out.size(0) == x.size(0),
                  "out must have one element for each of the ", x.size(0),
                  " rows of x, got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  int64_t rows = x.size(0);
  if (rows == 0) return;
  online_logsumexp_kernel<<<ladder::ceil_div(rows, kRows), kRows * kWarp, 0,
                            ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows, x.size(1));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("online_logsumexp(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("online_logsumexp", TORCH_BOX(&online_logsumexp));
}
