// times_table.cu: A grid with two dimensions. Exercise 3 of lesson 00, about 10 minutes.
//
// Write a multiplication table: element (r, c) is `(r + 1) * (c + 1)`. The table is
// stored row by row, so element (r, c) is at index `r * columns + c`. The grid has two
// dimensions, in blocks of 8 x 4 threads: `x` counts columns, `y` counts rows. One
// thread owns one element. Blocks at the right and lower edges have threads outside the
// table.
//
// Check this file with: python -m helpers check times_table
//
// [hints]
// - The column is blockIdx.x * blockDim.x + threadIdx.x. The row is the same with y.
// - Compare the row with rows and the column with columns. The element after the end of
//   a row is the first of the next row, so comparing only the index lets wrong threads
//   through.
// - If only square tables come out right, rows and columns are mixed up somewhere.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kWide = 8, kHigh = 4;  // threads of a block in x and in y

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// table: rows x columns ints, row by row.
__global__ void times_table_kernel(int* table, int rows, int columns) {
  // [solution: about 4 lines]
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns)
    table[row * columns + column] = (row + 1) * (column + 1);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void times_table(int64_t rows, int64_t columns, Tensor table) {
  ladder::check_input(table, "table", torch::headeronly::ScalarType::Int);
  STD_TORCH_CHECK(table.dim() == 2 && table.size(0) == rows && table.size(1) == columns,
                  "table must have the shape [rows, columns], got ",
                  ladder::shape_of(table));
  STD_TORCH_CHECK(table.numel() < (int64_t(1) << 30),
                  "table must have fewer than 2^30 elements, got ", table.numel());
  auto guard = ladder::on_device_of(table);
  if (table.numel() == 0) return;
  dim3 blocks(ceil_div(columns, kWide), ceil_div(rows, kHigh));
  STD_TORCH_CHECK(blocks.y <= 65535, "table must have at most ", 65535 * kHigh,
                  " rows, got ", rows);
  times_table_kernel<<<blocks, dim3(kWide, kHigh), 0, ladder::current_stream(table)>>>(
      table.mutable_data_ptr<int>(), int(rows), int(columns));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("times_table(int rows, int columns, Tensor(a!) table) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("times_table", TORCH_BOX(&times_table));
}
