// weighted_mean.cu: The mean of unequal parts. Exercise 2 of lesson 16, about 10 minutes.
//
// Each process has averaged a gradient over its own rows of the batch: `parts[r]` is
// the mean of process r, over `counts[r]` rows. The mean over the whole batch weights
// each part by its count; the mean of the means would be wrong. A process without rows
// has the mean of nothing, NaN, and must not spoil the result. Without any rows at all,
// the result is NaN.
//
// Check this file with: python -m helpers check weighted_mean
//
// [hints]
// - Add up counts[r] * parts[r] and the counts, and divide once.
// - 0 * NaN is NaN. A part with count 0 must not be multiplied; skip it.
// - Neighbouring threads own neighbouring elements, so each part is read in whole
//   sectors. parts[r] begins at index r * n.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// parts: ranks x n floats; counts: ranks numbers; out: n floats. Thread i of the grid
// owns element i of out.
__global__ void weighted_mean_kernel(const float* parts, const int64_t* counts,
                                     float* out, int64_t ranks, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // [solution: about 6 lines]
  float sum = 0, total = 0;
  for (int64_t r = 0; r < ranks; ++r) {
    if (counts[r] > 0) sum += counts[r] * parts[r * n + i];
    total += counts[r];
  }
  out[i] = sum / total;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void weighted_mean(const Tensor& parts, const Tensor& counts, Tensor out) {
  ladder::check_input(parts, "parts", torch::headeronly::ScalarType::Float);
  ladder::check_input(counts, "counts", torch::headeronly::ScalarType::Long);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(
      parts.dim() == 2 && counts.dim() == 1 && counts.size(0) == parts.size(0),
      "parts must be a matrix, and counts must have a number for each of its rows, "
      "got ",
      ladder::shape_of(parts), " and ", ladder::shape_of(counts));
  STD_TORCH_CHECK(out.dim() == 1 && out.size(0) == parts.size(1),
                  "out must have one element for each column of parts, ", parts.size(1),
                  ", got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(parts);
  int64_t n = parts.size(1);
  if (n == 0) return;
  weighted_mean_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                         ladder::current_stream(parts)>>>(
      parts.const_data_ptr<float>(), counts.const_data_ptr<int64_t>(),
      out.mutable_data_ptr<float>(), parts.size(0), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("weighted_mean(Tensor parts, Tensor counts, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("weighted_mean", TORCH_BOX(&weighted_mean));
}
