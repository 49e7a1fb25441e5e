// column_sum.cu: Add up columns, twice the same. Exercise 4 of lesson 04, about 30 minutes.
//
// `out[c]` is the sum over r of `x[r, c]`, as `grad_bias` needs it. Block b has 32 x 8 threads and owns 32 columns, the
// first of which is 32 b. Its eight rows of threads share the work, and neighbouring threads read neighbouring
// elements. The same input must always give the same bits, so the order of the additions must not depend on which warp
// comes first.
//
// Check this file with: python -m helpers check column_sum

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kColumns = 32, kRows = 8;  // threads of a block in x and in y

// ---------------------------------------------------------------------------------------------------------------------
// Kernel

// x: rows x columns floats, row by row; out: columns floats. The block has kColumns = 32 threads in x, kRows = 8 in y.
__global__ void column_sum_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  // YOUR CODE HERE: about 12 lines
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

void column_sum(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  STD_TORCH_CHECK(out.dim() == 1 && out.size(0) == x.size(1), "out must have one element for each of the ", x.size(1),
                  " columns of x, got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  int64_t rows = x.size(0), columns = x.size(1);
  if (columns == 0) return;
  column_sum_kernel<<<ladder::ceil_div(columns, kColumns), dim3(kColumns, kRows), 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows, columns);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("column_sum(Tensor x, Tensor(a!) out) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("column_sum", TORCH_BOX(&column_sum)); }
