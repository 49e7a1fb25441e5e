// matrix.h: a tensor as a matrix, and its check beside a vector of its columns, such as
// a bias or a weight.
#pragma once

#include "floating.h"

namespace ladder {

// x as a matrix: its last dimension is the columns, all others together are the rows.
struct Matrix {
  int64_t rows, columns;
};

// x: contiguous, floating-point, at least one dimension; `vector`, which messages call
// `name`: as long as x's last dimension.
inline Matrix check_x_and_vector(const Tensor& x, const Tensor& vector,
                                 const char* name) {
  ScalarType dtype = check_floating_input(x, "x");
  check_input(vector, name, dtype);
  STD_TORCH_CHECK(
      x.dim() > 0,
      "x must have a dimension for the columns, but is a scalar; pass x.view(1)");
  int64_t columns = x.size(x.dim() - 1);
  STD_TORCH_CHECK(vector.dim() == 1 && vector.size(0) == columns, name,
                  " must have one element for each of the ", columns,
                  " columns of x, got shape ", shape_of(vector));
  check_same_device(x, "x", vector, name);
  return {columns ? x.numel() / columns : 0, columns};
}

}  // namespace ladder
