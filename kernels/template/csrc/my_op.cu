// my_op.cu: out = (a - b)^2, elementwise, for float32 and float64.
//
// With s bytes per element it reads a and b and writes out: 3s, and memory bandwidth
// limits it. PyTorch's (a - b) ** 2 runs two kernels, which move 5s. Replace kernel,
// launcher and schema with your own; tests/ and my_op/__init__.py show what else an
// operator needs.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel. Each array has n elements; a thread takes one.

template <typename T>
__global__ void my_op_kernel(const T* __restrict__ a, const T* __restrict__ b,
                             T* __restrict__ out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    T difference = a[i] - b[i];
    out[i] = difference * difference;
  }
}

// -------------------------------------------------------------------------------------
// Launcher

template <typename T>
void launch(const Tensor& a, const Tensor& b, Tensor& out) {
  int64_t n = a.numel(), blocks = ladder::ceil_div(n, kThreads);
  my_op_kernel<<<blocks, kThreads, 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<T>(), b.const_data_ptr<T>(), out.mutable_data_ptr<T>(), n);
}

Tensor my_op(const Tensor& a, const Tensor& b) {
  ScalarType dtype =
      a.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  ladder::check_input(a, "a", dtype);
  ladder::check_input(b, "b", dtype);
  ladder::check_same(a, "a", b, "b");
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  if (a.numel() == 0) return out;  // a grid of 0 blocks is an error
  if (dtype == ScalarType::Double) {
    launch<double>(a, b, out);
  } else {
    launch<float>(a, b, out);
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.my_op.my_op(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(my_op, m) { m.def("my_op(Tensor a, Tensor b) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(my_op, CUDA, m) { m.impl("my_op", TORCH_BOX(&my_op)); }
