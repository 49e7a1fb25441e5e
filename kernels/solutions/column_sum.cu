// column_sum.cu: Add up columns, twice the same. Exercise 4 of lesson 04, about 30 minutes.
//
// `out[c]` is the sum over r of `x[r, c]`, as `grad_bias` needs it. Block b has 32 x 8
// threads and owns 32 columns, the first of which is 32 b. Its eight rows of threads
// share the work, and neighbouring threads read neighbouring elements. The same input
// must always give the same bits, so the order of the additions must not depend on
// which warp comes first.
//
// Check this file with: python -m helpers check column_sum
//
// [hints]
// - Thread (tx, ty) takes column 32 b + tx and adds up the rows ty, ty + 8, ty + 16,
//   ... in a local variable.
// - Eight threads hold the eight partial sums of a column. Through a __shared__ array
//   of 8 x 32 floats one of them can read the others; put a __syncthreads() between
//   writing and reading.
// - atomicAdd adds in the order in which the warps arrive, and a float sum depends on
//   that order. One thread that adds the eight in a loop always uses the same order.
// - All threads of the block must reach the barrier, even those past the last column.
//   Without rows the sums are 0.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kColumns = 32, kRows = 8;  // threads of a block in x and in y

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x: rows x columns floats, row by row; out: columns floats. The block has kColumns =
// 32 threads in x, kRows = 8 in y.
__global__ void column_sum_kernel(const float* x, float* out, int64_t rows,
                                  int64_t columns) {
  // [solution: about 12 lines]
  __shared__ float sums[kRows][kColumns];
  int64_t column = int64_t(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < rows; row += kRows)
      sum += x[row * columns + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();  // all partial sums are written
  if (threadIdx.y == 0 && column < columns) {
    for (int k = 1; k < kRows; ++k) sum += sums[k][threadIdx.x];
    out[column] = sum;
  }
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void column_sum(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  STD_TORCH_CHECK(out.dim() == 1 && out.size(0) == x.size(1),
                  "out must have one element for each of the ", x.size(1),
                  " columns of x, got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  int64_t rows = x.size(0), columns = x.size(1);
  if (columns == 0) return;
  column_sum_kernel<<<ladder::ceil_div(columns, kColumns), dim3(kColumns, kRows), 0,
                      ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows, columns);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("column_sum(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("column_sum", TORCH_BOX(&column_sum));
}
