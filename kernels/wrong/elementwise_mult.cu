// wrong/elementwise_mult.cu: two products with a published bug each, for lesson 02. Do
// not use.
//
//   mult_same_count      compares the element counts where the shapes were meant
//   mult_synchronising   waits for the GPU after every launch
//
// Each computes a * b for float32 tensors, in 12 bytes moved per element.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;

// -------------------------------------------------------------------------------------
// Kernel. a, b, out: n floats each. It is correct.

__global__ void mult_kernel(const float* a, const float* b, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] * b[i];
  }
}

// -------------------------------------------------------------------------------------
// Launchers

Tensor mult_same_count(const Tensor& a, const Tensor& b) {
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(b, "b", ScalarType::Float);
  STD_TORCH_CHECK(a.numel() == b.numel(),
                  "a and b must have the same number of elements");
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  int64_t n = a.numel();
  if (n == 0) return out;
  mult_kernel<<<ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor mult_synchronising(const Tensor& a, const Tensor& b) {
  ladder::check_same(a, "a", b, "b");
  Tensor out = mult_same_count(a, b);
  cudaDeviceSynchronize();  // blocks the CPU until the GPU has finished all its work
  return out;
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("mult_same_count(Tensor a, Tensor b) -> Tensor");
  m.def("mult_synchronising(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("mult_same_count", TORCH_BOX(&mult_same_count));
  m.impl("mult_synchronising", TORCH_BOX(&mult_synchronising));
}
