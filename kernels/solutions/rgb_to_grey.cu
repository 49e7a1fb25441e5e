// rgb_to_grey.cu: From colours to grey. Exercise 1 of lesson 08, about 5 minutes.
//
// An image has three planes of height x width floats, one after the other: red, green,
// blue. The grey value of a pixel is `0.299 * red + 0.587 * green + 0.114 * blue`. The
// grid has two dimensions and one thread per pixel, in blocks of 32 x 8 threads: x runs
// along a row. Blocks at the right and lower edges have threads outside the image.
//
// Check this file with: python -m helpers check rgb_to_grey
//
// [hints]
// - The column comes from blockIdx.x, blockDim.x and threadIdx.x, the row from
//   blockIdx.y, blockDim.y and threadIdx.y.
// - A pixel is at index row * width + column of a plane, and a plane has height * width
//   elements.
// - Compare both: row with height, column with width. The next row begins where a row
//   ends, so a single comparison of the index with height * width lets wrong threads
//   through.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kWide = 32, kHigh = 8;  // threads of a block in x and in y

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// image: 3 planes of height x width floats, row by row; grey: height x width floats.
__global__ void rgb_to_grey_kernel(const float* image, float* grey, int64_t height,
                                   int64_t width) {
  // [solution: about 5 lines]
  int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t row = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  if (row >= height || column >= width) return;
  int64_t i = row * width + column, plane = height * width;
  grey[i] =
      0.299f * image[i] + 0.587f * image[i + plane] + 0.114f * image[i + 2 * plane];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void rgb_to_grey(const Tensor& image, Tensor grey) {
  ladder::check_input(image, "image", torch::headeronly::ScalarType::Float);
  ladder::check_input(grey, "grey", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(image.dim() == 3 && image.size(0) == 3,
                  "image must have the shape [3, height, width], got ",
                  ladder::shape_of(image));
  int64_t height = image.size(1), width = image.size(2);
  STD_TORCH_CHECK(grey.dim() == 2 && grey.size(0) == height && grey.size(1) == width,
                  "grey must have the height and width of image, ",
                  ladder::shape_of(image), ", got shape ", ladder::shape_of(grey));
  auto guard = ladder::on_device_of(image);
  if (grey.numel() == 0) return;
  dim3 blocks(ceil_div(width, kWide), ceil_div(height, kHigh));
  STD_TORCH_CHECK(blocks.y <= 65535, "image must have at most ", 65535 * kHigh,
                  " rows, got ", height);
  rgb_to_grey_kernel<<<blocks, dim3(kWide, kHigh), 0, ladder::current_stream(image)>>>(
      image.const_data_ptr<float>(), grey.mutable_data_ptr<float>(), height, width);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("rgb_to_grey(Tensor image, Tensor(a!) grey) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("rgb_to_grey", TORCH_BOX(&rgb_to_grey));
}
