// row_scale_backward.cu: The gradients of a broadcast product. Exercise 4 of lesson 02, about 30 minutes.
//
// `y = x * scale[:, None]` multiplies each row of the matrix `x` by its own factor.
// From `grad`, the gradient of y, follow `grad_x[r, c] = grad[r, c] * scale[r]` and,
// since `scale[r]` was used in all columns, `grad_scale[r]`, the sum over c of `grad[r,
// c] * x[r, c]`. Write two kernels, with a thread per element of `grad_x` and of
// `grad_scale`. (The verdict calls the second wasteful: later lessons do better.)
//
// Check this file with: python -m helpers check row_scale_backward
//
// [hints]
// - Matrices are stored row by row: element (r, c) is at index r * columns + c.
//   Backwards: in which row is index i?
// - In the first kernel the guard compares with the number of elements, in the second
//   with the number of rows.
// - In the second kernel a thread runs along its row, adds up in a local variable and
//   writes once at the end. Without columns the sum is 0, which must be written too.
// - If only square matrices come out right, the code mixes up rows and columns
//   somewhere.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernels

// [cell]
// grad, grad_x: rows x columns floats, row by row; scale: rows floats. Thread i of the
// grid owns element i of grad_x.
__global__ void grad_x_kernel(const float* grad, const float* scale, float* grad_x,
                              int64_t rows, int64_t columns) {
  // [solution: about 3 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  grad_x[i] = grad[i] * scale[i / columns];
  // [end]
}

// grad, x: rows x columns floats; grad_scale: rows floats. Thread r of the grid owns
// row r.
__global__ void grad_scale_kernel(const float* grad, const float* x, float* grad_scale,
                                  int64_t rows, int64_t columns) {
  // [solution: about 5 lines]
  int64_t r = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int64_t i = r * columns; i < (r + 1) * columns; ++i) sum += grad[i] * x[i];
  grad_scale[r] = sum;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void row_scale_backward(const Tensor& grad, const Tensor& x, const Tensor& scale,
                        Tensor grad_x, Tensor grad_scale) {
  ladder::check_input(grad, "grad", torch::headeronly::ScalarType::Float);
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(scale, "scale", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  STD_TORCH_CHECK(scale.dim() == 1 && scale.size(0) == x.size(0),
                  "scale must have one element for each of the ", x.size(0),
                  " rows of x, got shape ", ladder::shape_of(scale));
  ladder::check_same(grad, "grad", x, "x");
  ladder::check_same(grad_x, "grad_x", x, "x");
  ladder::check_same(grad_scale, "grad_scale", scale, "scale");
  auto guard = ladder::on_device_of(x);
  cudaStream_t stream = ladder::current_stream(x);
  int64_t rows = x.size(0), columns = x.size(1), n = rows * columns;
  if (n > 0) {
    grad_x_kernel<<<ceil_div(n, kThreads), kThreads, 0, stream>>>(
        grad.const_data_ptr<float>(), scale.const_data_ptr<float>(),
        grad_x.mutable_data_ptr<float>(), rows, columns);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
  }
  if (rows > 0) {
    grad_scale_kernel<<<ceil_div(rows, kThreads), kThreads, 0, stream>>>(
        grad.const_data_ptr<float>(), x.const_data_ptr<float>(),
        grad_scale.mutable_data_ptr<float>(), rows, columns);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
  }
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "row_scale_backward(Tensor grad, Tensor x, Tensor scale, Tensor(a!) grad_x, "
      "Tensor(b!) grad_scale) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("row_scale_backward", TORCH_BOX(&row_scale_backward));
}
