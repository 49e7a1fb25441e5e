// museum/host.cu: a correct kernel, its correct launcher, and launchers with a bug
// each, which must not be used.
//
//   or_for_and        checks shapes || dtypes where && was meant
//   unchecked_dtype   the pointer is cast to float, whatever the tensor holds
//   strided_input     a transposed view is read as if it were contiguous
//   zero_size         no elements, so a grid of no blocks
//   no_launch_check   2,048 threads per block: the launch fails, and nothing checks it
//   default_stream    launched on the default stream, not on PyTorch's current one
//   no_device_guard   launched on the current device, not on the tensors' device
//
// Each returns a * b and moves 12 bytes per float. `multiply` is the fixed twin of them
// all.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;

// -------------------------------------------------------------------------------------
// Kernel. a, b, out: n elements each. It is correct.

template <typename T>
__global__ void multiply_kernel(const T* a, const T* b, T* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * b[i];
}

// -------------------------------------------------------------------------------------
// The correct launcher, for float32 and float64

template <typename T>
void launch(const Tensor& a, const Tensor& b, Tensor& out) {
  multiply_kernel<<<ceil_div(a.numel(), kThreads), kThreads, 0,
                    ladder::current_stream(a)>>>(a.const_data_ptr<T>(),
                                                 b.const_data_ptr<T>(),
                                                 out.mutable_data_ptr<T>(), a.numel());
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  ScalarType dtype =
      a.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  ladder::check_input(a, "a", dtype);
  ladder::check_input(b, "b", dtype);
  ladder::check_same(a, "a", b, "b");
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  if (a.numel() == 0) return out;
  if (dtype == ScalarType::Double) {
    launch<double>(a, b, out);
  } else {
    launch<float>(a, b, out);
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// The broken ones. Apart from its bug, each does what the correct one does.

const float* floats(const Tensor& t) { return static_cast<const float*>(t.data_ptr()); }

void launch_floats(const Tensor& a, const Tensor& b, Tensor& out) {
  auto guard = ladder::on_device_of(a);
  multiply_kernel<<<ceil_div(a.numel(), kThreads), kThreads, 0,
                    ladder::current_stream(a)>>>(
      floats(a), floats(b), static_cast<float*>(out.data_ptr()), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

Tensor or_for_and(const Tensor& a, const Tensor& b) {
  STD_TORCH_CHECK(
      ladder::shape_of(a) == ladder::shape_of(b) || a.scalar_type() == b.scalar_type(),
      "a and b must have the same shape and dtype");
  Tensor out = torch::stable::empty_like(a);
  launch_floats(a, b, out);
  return out;
}

Tensor unchecked_dtype(const Tensor& a, const Tensor& b) {
  ladder::check_same(a, "a", b, "b");
  Tensor out = torch::stable::empty_like(a);
  launch_floats(a, b, out);  // float64 in: half of each element is read as a float
  return out;
}

Tensor strided_input(const Tensor& a, const Tensor& b) {
  STD_TORCH_CHECK(
      a.scalar_type() == ScalarType::Float && b.scalar_type() == ScalarType::Float,
      "a and b must be float32");
  ladder::check_same(a, "a", b, "b");
  Tensor out = torch::stable::new_empty(a, a.sizes());
  launch_floats(a, b, out);
  return out;
}

Tensor zero_size(const Tensor& a, const Tensor& b) {
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(b, "b", ScalarType::Float);
  ladder::check_same(a, "a", b, "b");
  Tensor out = torch::stable::empty_like(a);
  launch_floats(a, b, out);
  return out;
}

// Checks and output for the launchers below.
Tensor checked_output(const Tensor& a, const Tensor& b) {
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(b, "b", ScalarType::Float);
  ladder::check_same(a, "a", b, "b");
  return torch::stable::empty_like(a);
}

Tensor no_launch_check(const Tensor& a, const Tensor& b) {
  Tensor out = checked_output(a, b);
  if (a.numel() == 0) return out;
  auto guard = ladder::on_device_of(a);
  constexpr int threads = 2048;  // a block has at most 1,024
  multiply_kernel<<<ceil_div(a.numel(), threads), threads, 0,
                    ladder::current_stream(a)>>>(
      floats(a), floats(b), out.mutable_data_ptr<float>(), a.numel());
  return out;
}

Tensor default_stream(const Tensor& a, const Tensor& b) {
  Tensor out = checked_output(a, b);
  if (a.numel() == 0) return out;
  auto guard = ladder::on_device_of(a);
  multiply_kernel<<<ceil_div(a.numel(), kThreads), kThreads>>>(
      floats(a), floats(b), out.mutable_data_ptr<float>(), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor no_device_guard(const Tensor& a, const Tensor& b) {
  Tensor out = checked_output(a, b);
  if (a.numel() == 0) return out;
  multiply_kernel<<<ceil_div(a.numel(), kThreads), kThreads, 0,
                    ladder::current_stream(a)>>>(
      floats(a), floats(b), out.mutable_data_ptr<float>(), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration: each takes a and b and returns a tensor

#define LAUNCHERS(each)                                                     \
  each(multiply) each(or_for_and) each(unchecked_dtype) each(strided_input) \
      each(zero_size) each(no_launch_check) each(default_stream) each(no_device_guard)
#define DEFINE(name) m.def(#name "(Tensor a, Tensor b) -> Tensor");
#define IMPLEMENT(name) m.impl(#name, TORCH_BOX(&name));

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { LAUNCHERS(DEFINE); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { LAUNCHERS(IMPLEMENT); }
