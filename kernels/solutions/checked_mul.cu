// checked_mul.cu: Refuse what the kernel would misread. Exercise 3 of lesson 02, about 15 minutes.
//
// The kernel is correct, but it sees bare pointers, and its launcher accepts anything.
// Write the checks: `a` and `b` must be float32 and contiguous, of the same shape, on
// the same GPU. Refuse every other input with a message that names the argument at
// fault and says what it was. Accept all the rest, empty tensors too.
//
// Check this file with: python -m helpers check checked_mul
//
// [hints]
// - STD_TORCH_CHECK(condition, "text ", value, " more text") raises a RuntimeError in
//   Python unless the condition holds. Tensors have t.is_cuda(), t.scalar_type(),
//   t.is_contiguous(), t.dim(), t.size(i) and t.get_device_index().
// - Write one check per requirement, each with its own message. Conditions joined by ||
//   pass as soon as one of them holds, and a message for three requirements cannot say
//   which one failed.
// - ladder::dtype_name(t.scalar_type()) is the dtype as Python writes it;
//   ladder::shape_of(t) is the shape as text. Two shapes are equal if their texts are:
//   [6] and [2, 3] have as many elements, but are different shapes.
// - a and b need the same checks: a lambda that takes the tensor and its name saves
//   writing them twice.
// [end]

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// [cell]
// Returns if the kernel can multiply a and b; otherwise raises an error that names the
// argument and says what it was.
void check_operands(const Tensor& a, const Tensor& b) {
  // [solution: about 17 lines]
  auto check_one = [](const Tensor& t, const char* name) {
    STD_TORCH_CHECK(t.is_cuda(), name, " must be a CUDA tensor; move it with ", name,
                    ".cuda()");
    STD_TORCH_CHECK(t.scalar_type() == ScalarType::Float, name,
                    " must be float32, got ", ladder::dtype_name(t.scalar_type()));
    STD_TORCH_CHECK(t.is_contiguous(), name,
                    " must be contiguous, got a strided view; pass ", name,
                    ".contiguous()");
  };
  check_one(a, "a");
  check_one(b, "b");
  STD_TORCH_CHECK(ladder::shape_of(a) == ladder::shape_of(b),
                  "a and b must have the same shape, got ", ladder::shape_of(a),
                  " and ", ladder::shape_of(b));
  STD_TORCH_CHECK(a.get_device_index() == b.get_device_index(),
                  "a and b must be on the same device, got cuda:", a.get_device_index(),
                  " and cuda:", b.get_device_index());
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Kernel and launcher

__global__ void checked_mul_kernel(const float* a, const float* b, float* out,
                                   int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * b[i];
}

Tensor checked_mul(const Tensor& a, const Tensor& b) {
  check_operands(a, b);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  int64_t n = a.numel();
  if (n == 0) return out;
  checked_mul_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                       ladder::current_stream(a)>>>(
      static_cast<const float*>(a.const_data_ptr()),
      static_cast<const float*>(b.const_data_ptr()),
      static_cast<float*>(out.mutable_data_ptr()), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("checked_mul(Tensor a, Tensor b) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("checked_mul", TORCH_BOX(&checked_mul));
}
