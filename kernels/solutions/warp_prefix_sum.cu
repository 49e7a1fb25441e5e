// warp_prefix_sum.cu: Running sums by shuffles. Exercise 1 of lesson 07, about 15 minutes.
//
// `out[r, c]` is the sum of `x[r, 0]` to `x[r, c]`, for rows of at most 32 columns: one
// warp per row, one lane per column. After the step with distance 1 a lane holds the
// sum of 2 neighbours, after distance 2 of 4, and so on: five steps, in registers,
// without shared memory. The check counts accesses: each element is read and written
// once.
//
// Check this file with: python -m helpers check warp_prefix_sum
//
// [hints]
// - __shfl_up_sync(0xffffffff, v, d) gives each lane the v of the lane d places before
//   it, as it was when all 32 lanes came to this line. Lanes 0 to d - 1 get their own v
//   back.
// - The value that a shuffle reads from a lane that does not take part is undefined.
//   Give lanes without a column 0, and let all 32 come to each shuffle.
// - A lane whose number is less than d has no neighbour that far before it: it must not
//   add.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kWarp = 32;
// The mask of a shuffle in which all 32 lanes take part.
constexpr unsigned kAll = 0xffffffff;
constexpr int kRows = 8;  // rows of a block: one warp for each

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, out: rows x columns floats, columns <= 32. All 32 lanes of a warp have the same
// row.
__global__ void warp_prefix_sum_kernel(const float* x, float* out, int64_t rows,
                                       int64_t columns) {
  int lane = threadIdx.x % kWarp;
  int64_t row = int64_t(blockIdx.x) * kRows + threadIdx.x / kWarp;
  // [solution: about 7 lines]
  bool mine = row < rows && lane < columns;
  float sum = mine ? x[row * columns + lane] : 0;
  for (int distance = 1; distance < kWarp; distance *= 2) {
    float before = __shfl_up_sync(kAll, sum, distance);
    if (lane >= distance) sum += before;
  }
  if (mine) out[row * columns + lane] = sum;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void warp_prefix_sum(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  STD_TORCH_CHECK(x.dim() == 2 && x.size(1) <= kWarp, "x must be a matrix of at most ",
                  kWarp, " columns, got shape ", ladder::shape_of(x));
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return;
  warp_prefix_sum_kernel<<<ladder::ceil_div(x.size(0), kRows), kRows * kWarp, 0,
                           ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(0), x.size(1));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("warp_prefix_sum(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("warp_prefix_sum", TORCH_BOX(&warp_prefix_sum));
}
