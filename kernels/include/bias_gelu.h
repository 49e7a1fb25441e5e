// bias_gelu.h: what the launchers of bias_gelu*.cu share: the input checks, and the second step of grad_bias.
#pragma once

#include <torch/csrc/stable/ops.h>

#include "floating.h"
#include "gelu.h"

namespace ladder {

// x as a matrix: its last dimension is the columns, all others together are the rows.
struct Matrix {
  int64_t rows, columns;
};

// x: contiguous, floating-point, at least one dimension; bias: a vector as long as x's last dimension.
inline Matrix check_x_and_bias(const Tensor& x, const Tensor& bias) {
  ScalarType dtype = check_floating_input(x, "x");
  check_input(bias, "bias", dtype);
  STD_TORCH_CHECK(x.dim() > 0, "x must have a dimension for the columns, but is a scalar; pass x.view(1)");
  int64_t columns = x.size(x.dim() - 1);
  STD_TORCH_CHECK(bias.dim() == 1 && bias.size(0) == columns, "bias must have one element for each of the ", columns,
                  " columns of x, got shape ", shape_of(bias));
  STD_TORCH_CHECK(x.get_device_index() == bias.get_device_index(),
                  "x and bias must be on the same device, got cuda:", x.get_device_index(),
                  " and cuda:", bias.get_device_index());
  return {columns ? x.numel() / columns : 0, columns};
}

inline Matrix check_backward(const Tensor& grad, const Tensor& x, const Tensor& bias) {
  Matrix matrix = check_x_and_bias(x, bias);
  check_input(grad, "grad", x.scalar_type());
  check_same(grad, "grad", x, "x");
  return matrix;
}

// ---------------------------------------------------------------------------------------------------------------------
// grad_bias, second step. The first step leaves rows of partial sums in `parts`; their sum over the rows is grad_bias.

constexpr int kSumColumns = 32, kSumRows = 8;  // a block of sum_parts_kernel

// parts: count x columns elements; out: columns. The order of the additions is fixed, so that the same input gives the
// same bits. Thread (tx, ty) adds rows ty, ty + 8, ...; then the first row of threads adds the 8 partial sums.
template <typename T>
__global__ void sum_parts_kernel(const Wide<T>* __restrict__ parts, T* __restrict__ out, int64_t count,
                                 int64_t columns) {
  __shared__ Wide<T> sums[kSumRows][kSumColumns];
  int64_t column = int64_t(blockIdx.x) * kSumColumns + threadIdx.x;
  Wide<T> sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < count; row += kSumRows) sum += parts[row * columns + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();  // all partial sums are written
  if (threadIdx.y == 0 && column < columns) {
    for (int k = 1; k < kSumRows; ++k) sum += sums[k][threadIdx.x];
    out[column] = T(sum);
  }
}

// How many rows a band has, and how many bands cover all rows: 0 if there are no rows.
struct Bands {
  int64_t rows, count;
};

// For about `blocks` blocks in all, `strips` of them side by side; no band has fewer rows than a block takes at once.
// The result does not depend on the GPU's number of SMs, so that a shape is added up in the same order on every GPU.
inline Bands bands_for(int64_t rows, int64_t strips, int64_t rows_at_once, int64_t blocks) {
  if (rows == 0) return {0, 0};
  int64_t most = ceil_div(rows, rows_at_once), wanted = blocks > strips ? blocks / strips : 1;
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
  sum_parts_kernel<T><<<ceil_div(columns, kSumColumns), dim3(kSumColumns, kSumRows), 0, current_stream(out)>>>(
      parts.const_data_ptr<Wide<T>>(), out.mutable_data_ptr<T>(), count, columns);
}

}  // namespace ladder
