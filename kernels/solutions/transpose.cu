// transpose.cu: Rows to columns, without waste. Exercise 3 of lesson 08, about 20 minutes.
//
// `out[c, r] = x[r, c]`. A thread that reads along rows must write along columns: 32
// sectors for each request of a warp instead of 4. So a block of 32 x 32 threads reads
// a tile of x into shared memory, row by row, and writes it to out, row by row too. The
// X-ray in the check must find neither scattered accesses to global memory nor bank
// conflicts.
//
// Check this file with: python -m helpers check transpose
//
// [hints]
// - Block (bx, by) reads the tile of x that begins at row 32 by and column 32 bx, and
//   writes the tile of out that begins at row 32 bx and column 32 by. In both,
//   threadIdx.x runs along a row.
// - The element that thread (tx, ty) writes has been read by thread (ty, tx): put a
//   __syncthreads() in between. Different threads are outside x and outside out, so
//   each access needs its own comparison, and no thread returns early.
// - Shared memory has 32 banks, and word w is in bank w % 32. In an array of 32 x 32
//   floats a column is in one bank; in an array of 32 x 33 it is spread over all 32.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kTile = 32;  // rows and columns of a tile

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x: rows x columns floats, row by row; out: columns x rows. A block has kTile x kTile
// = 32 x 32 threads.
__global__ void transpose_kernel(const float* x, float* out, int64_t rows,
                                 int64_t columns) {
  // [solution: about 8 lines]
  __shared__ float tile[kTile][kTile + 1];
  // Where the tile begins in x.
  int64_t row = int64_t(blockIdx.y) * kTile, column = int64_t(blockIdx.x) * kTile;
  int tx = threadIdx.x, ty = threadIdx.y;
  if (row + ty < rows && column + tx < columns)
    tile[ty][tx] = x[(row + ty) * columns + column + tx];
  __syncthreads();  // the tile is complete
  if (row + tx < rows && column + ty < columns)
    out[(column + ty) * rows + row + tx] = tile[tx][ty];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void transpose(const Tensor& x, Tensor out) {
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
  transpose_kernel<<<blocks, dim3(kTile, kTile), 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows, columns);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("transpose(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("transpose", TORCH_BOX(&transpose));
}
