// elementwise_mult_stable.cu: elementwise_mult_kernel.cu bound through PyTorch's stable
// interface.
//
// Its headers are few and small, so it compiles in seconds, and the library runs with
// later versions of PyTorch too. pybind11 makes a function of a Python module; this
// file registers an operator, torch.ops.NAME.elementwise_mult, with PyTorch's
// dispatcher.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "elementwise_mult_kernel.h"
#include "launch.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// -------------------------------------------------------------------------------------
// Checks and call

template <typename T>
void launch_on(const Tensor& a, const Tensor& b, Tensor& out) {
  launch_elementwise_mult(a.const_data_ptr<T>(), b.const_data_ptr<T>(),
                          out.mutable_data_ptr<T>(), a.numel(),
                          ladder::current_stream(a));
}

Tensor elementwise_mult(const Tensor& a, const Tensor& b) {
  ScalarType dtype =
      a.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  ladder::check_input(a, "a", dtype);
  ladder::check_input(b, "b", dtype);
  ladder::check_same(a, "a", b, "b");
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  if (a.numel() == 0) return out;
  if (dtype == ScalarType::Double) {
    launch_on<double>(a, b, out);
  } else {
    launch_on<float>(a, b, out);
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.elementwise_mult(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("elementwise_mult(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("elementwise_mult", TORCH_BOX(&elementwise_mult));
}
