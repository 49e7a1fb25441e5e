// attention_tiles.h: what attention.cu and attention_backward.cu share on tensor cores:
// tiles of rows of d elements in shared memory, and products of a warp.
#pragma once

#include "async_copy.h"
#include "attention.h"
#include "mma_sync.h"

namespace ladder {

constexpr int kThreads = 128;

// Whether all of these queries see all of these keys, if the keys that a query sees are
// neighbours.
template <typename Mask>
__device__ bool all_visible(const Mask& mask, int query, int queries, int key,
                            int keys) {
  return mask.visible(query, key + keys - 1) &&
         mask.visible(query + queries - 1, key) && mask.visible(query, key) &&
         mask.visible(query + queries - 1, key + keys - 1);
}

// The index of an element in a tile. 8 neighbours are a piece of 16 bytes; piece p of
// row r is at position p ^ (r % 8), so the 8 rows that ldmatrix reads at once are in
// different banks.
template <int d>
__device__ int swizzled(int row, int column) {
  return row * d + (column ^ row % 8 * 8);
}

// Starts the copies of `rows` rows from row `first` of a matrix of `count` rows; zeros
// below its end.
template <int rows, int d, typename T>
__device__ void start_tile(AsyncCopies& copies, T* tile, const T* from, int first,
                           int count) {
  constexpr int apart = kThreads * 8 / d;  // rows that the threads copy at once
  int row = threadIdx.x * 8 / d, column = threadIdx.x * 8 % d;
#pragma unroll
  for (int j = 0; j < rows; j += apart) {
    int y = first + row + j;
    copies.start<16>(&tile[swizzled<d>(row + j, column)],
                     from + int64_t(y) * d + column, y < count);
  }
}

// sum += a @ b^T. a: 16 * r rows from row `row` of a tile; b: all rows of a tile, which
// are the columns of the sum.
template <int d, typename T, int r, int n>
__device__ void multiply_rows(float (&sum)[r][n][4], const T* a, int row, const T* b) {
  int lane = threadIdx.x % 32;
#pragma unroll(8 / r)  // more at once would need more registers than there are
  for (int i = 0; i < d; i += 16) {
    uint32_t left[r][4], right[4];
#pragma unroll
    for (int y = 0; y < r; ++y) {
      load_matrices(left[y],
                    &a[swizzled<d>(row + 16 * y + lane % 16, i + lane / 16 * 8)]);
    }
#pragma unroll
    for (int x = 0; x < n; x += 2) {
      load_matrices(
          right,
          &b[swizzled<d>(8 * x + lane / 16 * 8 + lane % 8, i + lane / 8 % 2 * 8)]);
#pragma unroll
      for (int y = 0; y < r; ++y) {
        multiply_add<T>(sum[y][x], left[y], right[0], right[1]);
        multiply_add<T>(sum[y][x + 1], left[y], right[2], right[3]);
      }
    }
  }
}

// sum += a @ b. a: in registers, where an earlier product left it, and rounded to T; b:
// all rows of a tile.
template <int d, typename T, int r, int n>
__device__ void multiply(float (&sum)[r][d / 8][4], const float (&a)[r][n][4],
                         const T* b) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < n; i += 2) {
    uint32_t left[r][4], right[4];
#pragma unroll
    for (int y = 0; y < r; ++y) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        left[y][j] =
            packed<T>(a[y][i + j / 2][j % 2 * 2], a[y][i + j / 2][j % 2 * 2 + 1]);
    }
#pragma unroll
    for (int x = 0; x < d / 8; x += 2) {
      load_transposed(right, &b[swizzled<d>(8 * i + lane % 16, 8 * x + lane / 16 * 8)]);
#pragma unroll
      for (int y = 0; y < r; ++y) {
        multiply_add<T>(sum[y][x], left[y], right[0], right[1]);
        multiply_add<T>(sum[y][x + 1], left[y], right[2], right[3]);
      }
    }
  }
}

// Calls run(T*, std::integral_constant<int, d>()) with CUDA's type for the dtype if the
// kernels on tensor cores take these inputs; returns whether they do.
template <typename Run>
bool on_tensor_cores(ScalarType dtype, int d, Run run) {
  bool sixteen_bits = dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
  if (!sixteen_bits || (d != 64 && d != 128)) return false;
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 8) return false;
  auto with_d = [&](auto* type) {
    if (d == 64) run(type, std::integral_constant<int, 64>());
    if (d == 128) run(type, std::integral_constant<int, 128>());
  };
  FOR_FLOATING_DTYPE(dtype, [&] {
    if constexpr (sizeof(scalar_t) == 2)
      with_d(static_cast<Device<scalar_t>*>(nullptr));
  });
  return true;
}

}  // namespace ladder
