// swizzled_transpose.cu: A transpose without padding. Exercise 1 of lesson 10, about 15 minutes.
//
// `out[c, r] = x[r, c]` through a tile of 32 x 32 floats, like the exercise
// `transpose`, but without a 33rd column. `place` says where element (row, column) of
// the tile is stored. A warp writes a row of the tile and reads a column. Choose the
// place so that each of the two takes one wavefront: the 32 elements of a row must lie
// in 32 different banks, and so must those of a column. The check counts wavefronts and
// the bytes of shared memory.
//
// Check this file with: python -m helpers check swizzled_transpose
//
// [hints]
// - Word w of shared memory is in bank w % 32. Row by row, all elements of column 5 are
//   in bank 5.
// - Let each row have its elements in another order: element `column` of row `row` goes
//   to position `f(row, column)` of its row. For each row, f must use each of the 32
//   positions once; so it must for each column.
// - `row ^ column` does. If row or column stays and the other changes, the result
//   changes too.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kTile = 32;  // rows and columns of a tile

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// Where element (row, column) of a tile is stored: an index from 0 to kTile * kTile -
// 1, where kTile = 32.
__device__ int place(int row, int column) {
  int index = row * kTile + column;
  // [solution: about 1 line]
  index = row * kTile + (column ^ row);
  // [end]
  return index;
}

// x: rows x columns floats, row by row; out: columns x rows. A block has kTile x kTile
// threads.
__global__ void swizzled_transpose_kernel(const float* x, float* out, int64_t rows,
                                          int64_t columns) {
  __shared__ float tile[kTile * kTile];
  // Where the tile begins in x.
  int64_t row = int64_t(blockIdx.y) * kTile, column = int64_t(blockIdx.x) * kTile;
  int tx = threadIdx.x, ty = threadIdx.y;
  // [solution: about 5 lines]
  if (row + ty < rows && column + tx < columns)
    tile[place(ty, tx)] = x[(row + ty) * columns + column + tx];
  __syncthreads();  // the tile is complete
  if (row + tx < rows && column + ty < columns)
    out[(column + ty) * rows + row + tx] = tile[place(tx, ty)];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void swizzled_transpose(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  int64_t rows = x.size(0), columns = x.size(1);
  STD_TORCH_CHECK(out.dim() == 2 && out.size(0) == columns && out.size(1) == rows,
                  "out must have the columns and rows of x, ", ladder::shape_of(x),
                  ", the other way round; got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return;
  dim3 blocks(ceil_div(columns, kTile), ceil_div(rows, kTile));
  STD_TORCH_CHECK(blocks.y <= 65535, "x must have at most ", 65535 * kTile,
                  " rows, got ", rows);
  swizzled_transpose_kernel<<<blocks, dim3(kTile, kTile), 0,
                              ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows, columns);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("swizzled_transpose(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("swizzled_transpose", TORCH_BOX(&swizzled_transpose));
}
