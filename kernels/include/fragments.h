// fragments.h: what the rungs on mma.sync share: where a tile's elements lie in shared
// memory, and the epilogue.
//
// A piece is 16 bytes, 8 elements of a row, which ldmatrix reads at once. 8 pieces fill
// all 32 banks once. In a swizzled tile, piece p of row r is stored at position p ^ (r
// % 8): the 8 rows of a matrix that ldmatrix reads together are spread over all banks,
// and no memory is wasted on padding.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "narrow.h"

namespace ladder {

// The index of an element in a swizzled tile with rows of `width` 2-byte elements. Rows
// of less than 128 bytes share a line.
template <int width>
__device__ int swizzled(int row, int column) {
  constexpr int line = width < 64 ? 64 : width;
  int at = row * width + column;  // 8 elements are a piece
  return at ^ (at / line % 8) * 8;
}

// Rounds the sums of a warp, whose tile of c begins at (row, column), and writes them.
// A lane has the sums of 2 * rows rows and 2 * columns columns: sum[r][s][2 * i + j]
// belongs to row lane / 4 + 16 * r + 8 * i of the tile and to column lane % 4 * 2 + 8 *
// s + j.
template <bool wide, typename T, int rows, int columns>
__device__ void write_sums(T* c, const float (&sum)[rows][columns][4], int row,
                           int column, int m, int n) {
  int lane = threadIdx.x % 32;
  row += lane / 4;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int s = 0; s < columns; s += 2) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        int y = row + 16 * r + 8 * i, x = column + 8 * s;
        if constexpr (wide) {
          uint32_t left = pair<T>(sum[r][s][2 * i], sum[r][s][2 * i + 1]);
          uint32_t right = pair<T>(sum[r][s + 1][2 * i], sum[r][s + 1][2 * i + 1]);
          uint2 four = four_neighbours(left, right);
          x += first_of_four();
          if (y < m && x < n) *reinterpret_cast<uint2*>(&c[int64_t(y) * n + x]) = four;
        } else {
          for (int j = 0; j < 4; ++j) {
            int at = x + j / 2 * 8 + lane % 4 * 2 + j % 2;
            if (y < m && at < n)
              c[int64_t(y) * n + at] = narrowed<T>(sum[r][s + j / 2][2 * i + j % 2]);
          }
        }
      }
    }
  }
}

}  // namespace ladder
