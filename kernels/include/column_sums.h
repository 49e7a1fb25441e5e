// column_sums.h: the sum of each column of a matrix, for gradients of a bias or a
// weight that all rows share.
//
// It takes two steps. First each block goes down a band of rows and leaves the sums of
// its columns as a row of `parts`, in float or double. Then sum_parts_kernel, below,
// adds up the rows of `parts`.
#pragma once

#include "early_launch.h"
#include "floating.h"

namespace ladder {

constexpr int kSumColumns = 32, kSumRows = 8;  // a block of sum_parts_kernel

// parts: count x columns elements; out: columns. The order of the additions is fixed,
// so that the same input gives the same bits. Thread (tx, ty) adds rows ty, ty + 8,
// ...; then the first row of threads adds the 8 partial sums. A row of parts holds
// element 0 of all vectors of `size` elements, then element 1 of all, ...
template <typename T, int size = 1, int rows = kSumRows>
__global__ void sum_parts_kernel(const Wide<T>* __restrict__ parts, T* __restrict__ out,
                                 int64_t count, int64_t columns) {
  __shared__ Wide<T> sums[rows][kSumColumns];
  wait_for_kernel_before();
  int64_t column = int64_t(blockIdx.x) * kSumColumns + threadIdx.x;
  Wide<T> sum = 0;
  if (column < columns) {
#pragma unroll 8  // loads in flight
    for (int64_t row = threadIdx.y; row < count; row += rows)
      sum += parts[row * columns + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();  // all partial sums are written
  if (threadIdx.y == 0 && column < columns) {
    for (int k = 1; k < rows; ++k) sum += sums[k][threadIdx.x];
    int64_t vectors = columns / size;
    out[size == 1 ? column : column % vectors * size + column / vectors] = T(sum);
  }
}

// How many rows a band has, and how many bands cover all rows: 0 if there are no rows.
struct Bands {
  int64_t rows, count;
};

// For about `blocks` blocks in all, `strips` of them side by side; no band has fewer
// rows than a block takes at once. The result does not depend on the GPU's number of
// SMs, so that a shape is added up in the same order on every GPU.
inline Bands bands_for(int64_t rows, int64_t strips, int64_t rows_at_once,
                       int64_t blocks) {
  if (rows == 0) return {0, 0};
  int64_t most = ceil_div(rows, rows_at_once),
          wanted = blocks > strips ? blocks / strips : 1;
  int64_t band = ceil_div(rows, wanted < most ? wanted : most);
  return {band, ceil_div(rows, band)};
}

// The dtype of the partial sums for a tensor of this dtype, as Wide<T>.
inline ScalarType wide_dtype(ScalarType dtype) {
  return dtype == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

// Writes the sum of `count` rows of partial sums to out; zeros if there are none.
template <typename T>
void sum_parts(const Tensor& parts, Tensor& out, int64_t count) {
  int64_t columns = out.numel();
  sum_parts_kernel<T><<<ceil_div(columns, kSumColumns), dim3(kSumColumns, kSumRows), 0,
                        current_stream(out)>>>(
      parts.const_data_ptr<Wide<T>>(), out.mutable_data_ptr<T>(), count, columns);
}

// The same for parts of vectors, after a kernel that calls let_next_kernel_begin.
template <typename T, int size>
void sum_parts_of_vectors(const Tensor& parts, Tensor& out, int64_t count) {
  constexpr int rows = 2 * kSumRows;  // fewer loads one after the other
  int64_t columns = out.numel();
  EarlyLaunch launch(ceil_div(columns, kSumColumns), dim3(kSumColumns, rows), 0,
                     current_stream(out));
  STD_CUDA_CHECK(cudaLaunchKernelEx(&launch.config, sum_parts_kernel<T, size, rows>,
                                    parts.const_data_ptr<Wide<T>>(),
                                    out.mutable_data_ptr<T>(), count, columns));
}

}  // namespace ladder
