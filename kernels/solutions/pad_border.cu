// pad_border.cu: A border of zeros. Exercise 2 of lesson 08, about 10 minutes.
//
// `out` is the matrix `x` with a border of `border` zeros on all four sides: its shape
// is `[rows + 2 * border, columns + 2 * border]`. With such a border a filter or a tile
// can read past the edge. The grid has two dimensions, in blocks of 32 x 8 threads, and
// one thread per element of `out`: it writes a zero, or the element of `x` that belongs
// there. Every element of `out` must be written.
//
// Check this file with: python -m helpers check pad_border
//
// [hints]
// - A thread owns element (row, column) of out. Subtract border from both: that is its
//   place in x, if there is one.
// - The place exists if the row is at least 0 and less than rows, and the column is at
//   least 0 and less than columns.
// - A row of out is columns + 2 * border elements long, a row of x only columns.
// - Read x only where the place exists. A condition around the read is enough: the
//   zeros need no read.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kWide = 32, kHigh = 8;  // threads of a block in x and in y

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x: rows x columns floats; out: (rows + 2 * border) x (columns + 2 * border) floats.
// Both are stored row by row.
__global__ void pad_border_kernel(const float* x, int64_t border, float* out,
                                  int64_t rows, int64_t columns) {
  int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t row = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  // [solution: about 5 lines]
  int64_t width = columns + 2 * border;
  if (row >= rows + 2 * border || column >= width) return;
  int64_t r = row - border, c = column - border;
  bool inside = r >= 0 && r < rows && c >= 0 && c < columns;
  out[row * width + column] = inside ? x[r * columns + c] : 0;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void pad_border(const Tensor& x, int64_t border, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x));
  STD_TORCH_CHECK(border >= 0, "border must be 0 or more, got ", border);
  int64_t rows = x.size(0), columns = x.size(1), height = rows + 2 * border,
          width = columns + 2 * border;
  STD_TORCH_CHECK(out.dim() == 2 && out.size(0) == height && out.size(1) == width,
                  "out must have the shape [", height, ", ", width, "], got ",
                  ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  if (out.numel() == 0) return;
  dim3 blocks(ceil_div(width, kWide), ceil_div(height, kHigh));
  STD_TORCH_CHECK(blocks.y <= 65535, "out must have at most ", 65535 * kHigh,
                  " rows, got ", height);
  pad_border_kernel<<<blocks, dim3(kWide, kHigh), 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), border, out.mutable_data_ptr<float>(), rows, columns);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("pad_border(Tensor x, int border, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("pad_border", TORCH_BOX(&pad_border));
}
