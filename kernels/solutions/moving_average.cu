// moving_average.cu: Smooth with any grid. Exercise 4 of lesson 01, about 30 minutes.
//
// `out[i]` is the mean of those elements from `x[i - radius]` to `x[i + radius]` that
// exist: near both ends the window is shorter, and its sum is divided by fewer
// elements. The caller chooses the grid, however small: the kernel must be correct for
// any number of blocks and threads, and the launch must go to the given stream.
//
// Check this file with: python -m helpers check moving_average
//
// [hints]
// - Begin with the outer loop: at which element does a thread start, and how many
//   threads does the grid have? After element i the thread goes on to element i plus
//   that number.
// - For one i, find the first and the last index of its window, each cut off at the end
//   of the vector; then add them up in an inner loop. The number of terms is last -
//   first + 1.
// - radius may be larger than n. Compare before you add: 'i < radius ? 0 : i - radius'
//   can neither become negative nor overflow.
// - The launch is 'kernel<<<blocks, threads, bytes of shared memory,
//   stream>>>(arguments)'; this kernel uses no shared memory.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

// -------------------------------------------------------------------------------------
// Kernel and launch

// [cell]
// x, out: n floats each; radius >= 0. For any grid: its threads share the n elements by
// a grid-stride loop.
__global__ void moving_average_kernel(const float* x, int64_t radius, float* out,
                                      int64_t n) {
  // [solution: about 8 lines]
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    int64_t first = i < radius ? 0 : i - radius;
    int64_t last = n - 1 - i < radius ? n - 1 : i + radius;
    float sum = 0;
    for (int64_t j = first; j <= last; ++j) sum += x[j];
    out[i] = sum / float(last - first + 1);
  }
  // [end]
}

// Starts the kernel with `blocks` blocks of `threads` threads on `stream`.
void start(const float* x, int64_t radius, float* out, int64_t n, int64_t blocks,
           int64_t threads, cudaStream_t stream) {
  // [solution: about 1 line]
  moving_average_kernel<<<blocks, threads, 0, stream>>>(x, radius, out, n);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void moving_average(const Tensor& x, int64_t radius, int64_t blocks, int64_t threads,
                    Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", out, "out");
  STD_TORCH_CHECK(radius >= 0, "radius must be 0 or more, got ", radius);
  STD_TORCH_CHECK(blocks >= 1 && threads >= 1,
                  "blocks and threads must be 1 or more, got ", blocks, " and ",
                  threads);
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return;
  start(x.const_data_ptr<float>(), radius, out.mutable_data_ptr<float>(), x.numel(),
        blocks, threads, ladder::current_stream(x));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "moving_average(Tensor x, int radius, int blocks, int threads, Tensor(a!) out) "
      "-> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("moving_average", TORCH_BOX(&moving_average));
}
