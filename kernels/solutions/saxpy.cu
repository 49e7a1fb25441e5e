// saxpy.cu: A few threads for many elements. Exercise 2 of lesson 01, about 10 minutes.
//
// `out[i] = a * x[i] + y[i]` for n elements, with a grid that the caller chooses: it
// may have fewer threads than there are elements, or more. Let each thread run through
// the elements in steps of the whole grid, so that the threads of a warp always touch
// neighbouring elements. The kernel moves 12 bytes per element. The check counts
// sectors.
//
// Check this file with: python -m helpers check saxpy
//
// [hints]
// - The grid has gridDim.x * blockDim.x threads. A thread begins at its own index and
//   goes on by that number.
// - A contiguous piece for each thread is correct too, but then the lanes of a warp
//   touch elements that lie far apart, and each of them costs a sector of its own.
// - Index and step need 64 bits: convert the first factor of each product to int64_t.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x, y, out: n floats each. For any grid.
__global__ void saxpy_kernel(float a, const float* x, const float* y, float* out,
                             int64_t n) {
  // [solution: about 4 lines]
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    out[i] = a * x[i] + y[i];
  }
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void saxpy(double a, const Tensor& x, const Tensor& y, int64_t blocks, int64_t threads,
           Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(y, "y", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", y, "y");
  ladder::check_same(x, "x", out, "out");
  STD_TORCH_CHECK(blocks >= 1, "blocks must be 1 or more, got ", blocks);
  STD_TORCH_CHECK(threads >= 1 && threads <= 1024, "threads must be 1 to 1,024, got ",
                  threads);
  auto guard = ladder::on_device_of(x);
  saxpy_kernel<<<blocks, threads, 0, ladder::current_stream(x)>>>(
      float(a), x.const_data_ptr<float>(), y.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), x.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "saxpy(float a, Tensor x, Tensor y, int blocks, int threads, Tensor(a!) out) -> "
      "()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("saxpy", TORCH_BOX(&saxpy));
}
