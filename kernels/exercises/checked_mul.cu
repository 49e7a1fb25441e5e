// checked_mul.cu: Refuse what the kernel would misread. Exercise 3 of lesson 02, about 15 minutes.
//
// The kernel is correct, but it sees bare pointers, and its launcher accepts anything. Write the checks: `a` and `b`
// must be float32 and contiguous, of the same shape, on the same GPU. Refuse every other input with a message that
// names the argument at fault and says what it was. Accept all the rest, empty tensors too.
//
// Check this file with: python -m helpers check checked_mul

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// Returns if the kernel can multiply a and b; otherwise raises an error that names the argument and says what it was.
void check_operands(const Tensor& a, const Tensor& b) {
  // YOUR CODE HERE: about 12 lines
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernel and launcher

__global__ void checked_mul_kernel(const float* a, const float* b, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * b[i];
}

Tensor checked_mul(const Tensor& a, const Tensor& b) {
  check_operands(a, b);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  int64_t n = a.numel();
  if (n == 0) return out;
  checked_mul_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(a)>>>(
      static_cast<const float*>(a.const_data_ptr()), static_cast<const float*>(b.const_data_ptr()),
      static_cast<float*>(out.mutable_data_ptr()), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("checked_mul(Tensor a, Tensor b) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("checked_mul", TORCH_BOX(&checked_mul)); }
