// gather_rows.cu: Rows by number, 16 bytes at a time. Exercise 2 of lesson 06, about 15 minutes.
//
// An embedding layer looks rows up: row j of `out` is row `index[j]` of `table`. A row
// has `vectors` groups of 4 floats. As in PyTorch, a negative index counts from the
// end: -1 is the last row. Thread i owns the group i of `out` and moves it in one
// access of 16 bytes. The launcher has checked that the pointers are aligned; all
// indices are valid.
//
// Check this file with: python -m helpers check gather_rows
//
// [hints]
// - Group i of out lies in row i / vectors and is group i % vectors of that row.
// - index[j] is read by all threads of a row, which is cheap: the same address costs a
//   warp one sector.
// - Float4::load(table, g) reads the group g of table as a whole; value.store(out, i)
//   writes the group i of out. In which group does row r of table begin?
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"
#include "vector.h"

using torch::stable::Tensor;
using Float4 = ladder::Vector<float>;  // 4 floats, 16 bytes

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// table: rows rows, out: count rows, each of `vectors` groups of 4 floats. index: count
// numbers from -rows to rows - 1.
__global__ void gather_rows_kernel(const float* table, const int64_t* index, float* out,
                                   int64_t rows, int64_t count, int64_t vectors) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count * vectors) return;
  // [solution: about 3 lines]
  int64_t row = index[i / vectors];
  if (row < 0) row += rows;
  Float4::load(table, row * vectors + i % vectors).store(out, i);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void gather_rows(const Tensor& table, const Tensor& index, Tensor out) {
  ladder::check_input(table, "table", torch::headeronly::ScalarType::Float);
  ladder::check_input(index, "index", torch::headeronly::ScalarType::Long);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(
      table.dim() == 2 && table.size(1) % 4 == 0,
      "table must be a matrix whose columns are a multiple of 4, got shape ",
      ladder::shape_of(table));
  STD_TORCH_CHECK(index.dim() == 1, "index must be a vector, got shape ",
                  ladder::shape_of(index));
  STD_TORCH_CHECK(
      out.dim() == 2 && out.size(0) == index.size(0) && out.size(1) == table.size(1),
      "out must have a row for each index and the columns of table, got shape ",
      ladder::shape_of(out));
  const float* from = table.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  STD_TORCH_CHECK(ladder::all_aligned_to(16, from, to),
                  "table and out must begin at a multiple of 16 bytes");
  auto guard = ladder::on_device_of(table);
  int64_t count = index.size(0), vectors = table.size(1) / 4;
  if (count * vectors == 0) return;
  gather_rows_kernel<<<ladder::ceil_div(count * vectors, kThreads), kThreads, 0,
                       ladder::current_stream(table)>>>(
      from, index.const_data_ptr<int64_t>(), to, table.size(0), count, vectors);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("gather_rows(Tensor table, Tensor index, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("gather_rows", TORCH_BOX(&gather_rows));
}
