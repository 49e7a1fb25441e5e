// outer_meta.cu: A result without numbers. Exercise 2 of lesson 12, about 15 minutes.
//
// The operator returns the outer product of two vectors: `out[i, j] = a[i] * b[j]`.
// Give it an implementation for tensors on the device `meta`, which have a shape and a
// dtype but no memory. It returns a meta tensor with the shape and the dtype of the
// result, and refuses whatever the operator refuses. A compiler calls it before any
// kernel runs. (`torch::stable::new_empty` makes a tensor like another, of any shape.)
//
// Check this file with: python -m helpers check outer_meta
//
// [hints]
// - torch::stable::new_empty(a, {rows, columns}) makes a tensor with the dtype and on
//   the device of a. For a meta tensor nothing is allocated.
// - ladder::check_input accepts only CUDA tensors, and a meta tensor is not one. Check
//   dim() and scalar_type() with STD_TORCH_CHECK(condition, "message ", value).
// - The first index of the result runs over a, the second over b. Either may have no
//   elements.
// - This function cannot represent sizes that are not known yet: for `dynamic=True` a
//   fake is registered in Python.
// [end]

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel and launcher

template <typename T>
__global__ void outer_kernel(const T* a, const T* b, T* out, int64_t rows,
                             int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * columns) out[i] = a[i / columns] * b[i % columns];
}

template <typename T>
void start(const Tensor& a, const Tensor& b, Tensor& out) {
  outer_kernel<T>
      <<<ladder::ceil_div(out.numel(), kThreads), kThreads, 0,
         ladder::current_stream(a)>>>(a.const_data_ptr<T>(), b.const_data_ptr<T>(),
                                      out.mutable_data_ptr<T>(), a.size(0), b.size(0));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

Tensor outer_meta(const Tensor& a, const Tensor& b) {
  STD_TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "a and b must be vectors, got shapes ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
  ladder::check_input(a, "a", a.scalar_type());
  ladder::check_input(b, "b", a.scalar_type());
  bool is_double = a.scalar_type() == ScalarType::Double;
  STD_TORCH_CHECK(is_double || a.scalar_type() == ScalarType::Float,
                  "a must be float32 or float64, got ",
                  ladder::dtype_name(a.scalar_type()));
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::new_empty(a, {a.size(0), b.size(0)});
  if (out.numel() == 0) return out;
  if (is_double) {
    start<double>(a, b, out);
  } else {
    start<float>(a, b, out);
  }
  return out;
}

// -------------------------------------------------------------------------------------
// For the compiler

// [cell]
// a, b: meta tensors. Returns a tensor like the result of outer_meta(a, b), without
// memory; refuses tensors that are not vectors, two different dtypes, and dtypes other
// than float32 and float64.
Tensor outer_without_numbers(const Tensor& a, const Tensor& b) {
  Tensor out = torch::stable::empty_like(a);
  // [solution: about 9 lines]
  STD_TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "a and b must be vectors, got shapes ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
  ScalarType dtype = a.scalar_type();
  STD_TORCH_CHECK(dtype == b.scalar_type() &&
                      (dtype == ScalarType::Float || dtype == ScalarType::Double),
                  "a and b must both be float32 or both float64, got ",
                  ladder::dtype_name(dtype), " and ",
                  ladder::dtype_name(b.scalar_type()));
  out = torch::stable::new_empty(a, {a.size(0), b.size(0)});
  // [end]
  return out;
}
// [end]

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("outer_meta(Tensor a, Tensor b) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("outer_meta", TORCH_BOX(&outer_meta));
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, Meta, m) {
  m.impl("outer_meta", TORCH_BOX(&outer_without_numbers));
}
