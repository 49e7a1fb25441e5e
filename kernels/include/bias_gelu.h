// bias_gelu.h: what the launchers of bias_gelu*.cu share: the input checks.
#pragma once

#include <torch/csrc/stable/ops.h>

#include "column_sums.h"
#include "floating.h"
#include "gelu.h"
#include "matrix.h"

namespace ladder {

inline Matrix check_x_and_bias(const Tensor& x, const Tensor& bias) {
  return check_x_and_vector(x, bias, "bias");
}

inline Matrix check_backward(const Tensor& grad, const Tensor& x, const Tensor& bias) {
  Matrix matrix = check_x_and_bias(x, bias);
  check_input(grad, "grad", x.scalar_type());
  check_same(grad, "grad", x, "x");
  return matrix;
}

}  // namespace ladder
