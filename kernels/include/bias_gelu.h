// bias_gelu.h: what the launchers of bias_gelu*.cu share: the input checks.
#pragma once

#include <torch/csrc/stable/ops.h>

#include "column_sums.h"
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

}  // namespace ladder
