// elementwise_mult.cpp: the classic binding of elementwise_mult_kernel.cu, in a file
// that nvcc never sees.
//
// g++ compiles it once; editing the kernel does not recompile it. It includes only the
// parts of PyTorch that it uses, which takes a quarter of the time of
// torch/extension.h, PyTorch's whole C++ interface with optimisers and all.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>

#include "elementwise_mult_kernel.h"

// -------------------------------------------------------------------------------------
// Checks and call

void check_input(const at::Tensor& x, const char* name) {
  TORCH_CHECK(x.is_cuda(), name, " must be a CUDA tensor, but is on ", x.device(),
              "; move it with ", name, ".cuda()");
  TORCH_CHECK(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble, name,
              " must be float32 or float64, got ", x.scalar_type(),
              "; convert it with ", name, ".float()");
  TORCH_CHECK(x.is_contiguous(), name, " must be contiguous, got strides ", x.strides(),
              "; pass ", name, ".contiguous()");
}

at::Tensor elementwise_mult(const at::Tensor& a, const at::Tensor& b) {
  check_input(a, "a");
  check_input(b, "b");
  TORCH_CHECK(a.sizes() == b.sizes(), "a and b must have the same shape, got ",
              a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "b must have the dtype of a, ",
              a.scalar_type(), ", got ", b.scalar_type());
  TORCH_CHECK(a.device() == b.device(), "a and b must be on one device, got ",
              a.device(), " and ", b.device());
  const c10::cuda::CUDAGuard guard(a.device());
  at::Tensor out = at::empty_like(a);
  if (a.numel() == 0) return out;
  cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  if (a.scalar_type() == at::kFloat) {
    launch_elementwise_mult(a.const_data_ptr<float>(), b.const_data_ptr<float>(),
                            out.mutable_data_ptr<float>(), a.numel(), stream);
  } else {
    launch_elementwise_mult(a.const_data_ptr<double>(), b.const_data_ptr<double>(),
                            out.mutable_data_ptr<double>(), a.numel(), stream);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Binding

// region binding
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("elementwise_mult", &elementwise_mult, "a * b", pybind11::arg("a"),
        pybind11::arg("b"));
}
// endregion
