// register_column.cu: A column in registers. Exercise 1 of lesson 09, about 10 minutes.
//
// `c = a @ b`, without shared memory. A thread computes 8 elements of c, one below the
// other: their sums are an array of 8 that the compiler keeps in registers. It reads an
// element of b once and uses it for all 8, so that 8 multiplications cost 9 reads, not
// 16. Sizes may have any value. The check counts reads.
//
// Check this file with: python -m helpers check register_column
//
// [hints]
// - Thread x of block (bx, by) owns column kThreads * bx + x of kRows rows, which begin
//   at row kRows * by.
// - The outer loop runs over k and reads b once. The inner loop runs over the 8 rows,
//   reads a and adds to sum[r].
// - All lanes of a warp have the same rows: they request the same element of a, which
//   costs one sector.
// - The last threads have fewer rows, or no column: they must not read outside a or b.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kRows = 8;      // of c for each thread
constexpr int kThreads = 64;  // per block, one for each column

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// a: m x k, b: k x n, c: m x n floats, row by row. The grid has a block for kThreads =
// 64 columns and kRows = 8 rows.
__global__ void register_column_kernel(const float* a, const float* b, float* c,
                                       int64_t m, int64_t n, int64_t k) {
  int64_t column = int64_t(blockIdx.x) * kThreads + threadIdx.x,
          row = int64_t(blockIdx.y) * kRows;
  // [solution: about 11 lines]
  if (column >= n) return;
  float sum[kRows] = {};
  for (int64_t i = 0; i < k; ++i) {
    float y = b[i * n + column];
    for (int r = 0; r < kRows; ++r) {
      if (row + r < m) sum[r] += a[(row + r) * k + i] * y;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (row + r < m) c[(row + r) * n + column] = sum[r];
  }
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void register_column(const Tensor& a, const Tensor& b, Tensor c) {
  ladder::check_input(a, "a", torch::headeronly::ScalarType::Float);
  ladder::check_input(b, "b", torch::headeronly::ScalarType::Float);
  ladder::check_input(c, "c", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0),
                  "a and b must have the shapes [m, k] and [k, n], got ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  STD_TORCH_CHECK(c.dim() == 2 && c.size(0) == m && c.size(1) == n,
                  "c must have the shape [m, n], got ", ladder::shape_of(c));
  auto guard = ladder::on_device_of(a);
  if (c.numel() == 0) return;
  dim3 blocks(ceil_div(n, kThreads), ceil_div(m, kRows));
  STD_TORCH_CHECK(blocks.y <= 65535,
                  "c must fit a grid, which has at most 65,535 blocks in y, got shape ",
                  ladder::shape_of(c));
  register_column_kernel<<<blocks, kThreads, 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.mutable_data_ptr<float>(),
      m, n, k);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("register_column(Tensor a, Tensor b, Tensor(a!) c) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("register_column", TORCH_BOX(&register_column));
}
