// 03_tiled.cu: c = a @ b through tiles of 32 x 32 elements in shared memory.
//
// What it adds: a block computes a tile of c. It copies a tile of a and a tile of b,
// each thread one element of each; then every thread reads 32 pairs from shared memory.
// An element of a or b is requested once per 32 columns or rows of c: 8 FLOPs per byte
// from global memory instead of 0.25.
//
// The lanes of a warp copy elements that are neighbours in memory: along rows or, for a
// transposed matrix, along columns. In the second case they write a column of the tile.
// If the tile's rows have 32 elements, a column is in one bank of shared memory and the
// warp's write takes 32 wavefronts; with one unused element more per row, the column is
// spread over 32 banks. Padding costs time, too: rows of 33 elements do not all begin
// at multiples of 16 bytes, so the multiplying loop reads elements one by one, not 4 at
// once, and takes 1.7 times as long on an H200. So:
//
//   matmul_tiled            rows of 33 elements if a column is written, else of 32
//   matmul_tiled_padded     always 33, for comparison
//   matmul_tiled_unpadded   always 32, for comparison
//
// What limits it: shared memory. Each multiplication still reads two elements, and an
// SM delivers 32 per cycle, while its FP32 units could use 256. 04_register_1d.cu, the
// next rung, keeps elements in registers.
//
// On an H200 it has 16% of cuBLAS's speed at 4096 x 4096 x 4096, float32.
//   a, b   any strides; copied in few sectors if rows or columns are contiguous
//   dtypes float64, float32, float16, bfloat16; sums of the 16-bit types are kept in
//   float and rounded once

#include <torch/csrc/stable/library.h>

#include "matmul.h"

using ladder::ceil_div;
using ladder::MatrixView;
using ladder::Sum;
using torch::stable::Tensor;

constexpr int kTile = 32;  // rows and columns of a tile, and of a block's threads
static_assert(kTile * kTile <= 1024,
              "a block has one thread per element of a tile, and at most 1,024");

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

template <typename T>
__host__ __device__ bool lies_by_rows(const MatrixView<T>& matrix) {
  return matrix.column_stride <= matrix.row_stride;
}

// Copies the tile that begins at (row, column) of a matrix of rows x columns elements;
// zeros outside the matrix.
template <typename T, int pitch>
__device__ void copy_tile(T (&tile)[kTile][pitch], MatrixView<T> from, int64_t row,
                          int64_t column, int64_t rows, int64_t columns) {
  bool by_rows = lies_by_rows(from);  // x, the lane, follows the contiguous direction
  int i = by_rows ? threadIdx.y : threadIdx.x, j = by_rows ? threadIdx.x : threadIdx.y;
  bool inside = row + i < rows && column + j < columns;
  tile[i][j] = inside ? from.data[from.at(row + i, column + j)] : T(0);
}

template <int padding, typename T>
__global__ void matmul_tiled_kernel(MatrixView<T> a, MatrixView<T> b, T* c, int64_t m,
                                    int64_t n, int64_t k) {
  __shared__ T tile_a[kTile][kTile + padding], tile_b[kTile][kTile + padding];
  int x = threadIdx.x, y = threadIdx.y;
  int64_t first_row = int64_t(blockIdx.y) * kTile,
          first_column = int64_t(blockIdx.x) * kTile;
  Sum<T> sum = 0;
  for (int64_t begin = 0; begin < k; begin += kTile) {
    copy_tile(tile_a, a, first_row, begin, m, k);
    copy_tile(tile_b, b, begin, first_column, k, n);
    __syncthreads();  // the tiles are complete
    for (int i = 0; i < kTile; ++i) {
      sum += Sum<T>(tile_a[y][i]) * Sum<T>(tile_b[i][x]);
    }
    __syncthreads();  // no thread reads them any more
  }
  // The guard comes last: a thread outside c has elements to copy and barriers to
  // reach.
  if (first_row + y < m && first_column + x < n)
    c[(first_row + y) * n + first_column + x] = T(sum);
}

// -------------------------------------------------------------------------------------
// Launchers

enum class Padding { where_it_helps, always, never };

Tensor run(const Tensor& a, const Tensor& b, Padding padding) {
  auto launch = [padding](auto a, auto b, auto* c, ladder::MatmulSizes size,
                          cudaStream_t stream) {
    dim3 threads(kTile, kTile);
    dim3 blocks =
        ladder::matmul_grid(ceil_div(size.n, kTile), ceil_div(size.m, kTile), "a");
    bool columns_written = !lies_by_rows(a) || !lies_by_rows(b);
    if (padding == Padding::always ||
        (padding == Padding::where_it_helps && columns_written)) {
      matmul_tiled_kernel<1>
          <<<blocks, threads, 0, stream>>>(a, b, c, size.m, size.n, size.k);
    } else {
      matmul_tiled_kernel<0>
          <<<blocks, threads, 0, stream>>>(a, b, c, size.m, size.n, size.k);
    }
  };
  return ladder::matmul<double, float, ladder::Half, ladder::BFloat16>(
      a, b, ladder::Layout::any, launch);
}

Tensor matmul_tiled(const Tensor& a, const Tensor& b) {
  return run(a, b, Padding::where_it_helps);
}
Tensor matmul_tiled_padded(const Tensor& a, const Tensor& b) {
  return run(a, b, Padding::always);
}
Tensor matmul_tiled_unpadded(const Tensor& a, const Tensor& b) {
  return run(a, b, Padding::never);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_tiled(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_tiled(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_tiled_padded(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_tiled_unpadded(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_tiled", TORCH_BOX(&matmul_tiled));
  m.impl("matmul_tiled_padded", TORCH_BOX(&matmul_tiled_padded));
  m.impl("matmul_tiled_unpadded", TORCH_BOX(&matmul_tiled_unpadded));
}
