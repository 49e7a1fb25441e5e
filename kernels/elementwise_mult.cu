// elementwise_mult.cu: out = a * b for float32 tensors of one shape, bound to Python
// the classic way, in one file.
//
// It moves 12 bytes per multiplication, like vector_add, and memory bandwidth limits
// it; the binding does not change that. The classic binding is torch/extension.h and
// pybind11: all of PyTorch's C++ interface is compiled along with these few lines, and
// in a .cu file nvcc does it twice, for the host and for the GPU. Lesson 02 shows what
// that costs, and goes on to
//
//   elementwise_mult_kernel.cu  the kernel in a file of its own, without PyTorch
//   elementwise_mult.cpp        its classic binding
//   elementwise_mult_stable.cu  its binding through PyTorch's stable interface

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel. a, b, out: n floats each.

__global__ void elementwise_mult_kernel(const float* a, const float* b, float* out,
                                        int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] * b[i];
  }
}

// -------------------------------------------------------------------------------------
// Launcher

// region checks
// #x is the argument's name as text, so that the message can say which one is wrong.
#define CHECK_CUDA(x)                                                           \
  TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor, but is on ", x.device(), \
              "; move it with " #x ".cuda()")
#define CHECK_FLOAT(x)                                                    \
  TORCH_CHECK(x.scalar_type() == at::kFloat, #x " must be float32, got ", \
              x.scalar_type(), "; pass " #x ".float()")
#define CHECK_CONTIGUOUS(x)                                                           \
  TORCH_CHECK(x.is_contiguous(), #x " must be contiguous, got strides ", x.strides(), \
              "; pass " #x ".contiguous()")
#define CHECK_INPUT(x) \
  CHECK_CUDA(x);       \
  CHECK_FLOAT(x);      \
  CHECK_CONTIGUOUS(x)
// endregion

torch::Tensor elementwise_mult(torch::Tensor a, torch::Tensor b) {
  CHECK_INPUT(a);
  CHECK_INPUT(b);
  TORCH_CHECK(a.sizes() == b.sizes(), "a and b must have the same shape, got ",
              a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.device() == b.device(), "a and b must be on one device, got ",
              a.device(), " and ", b.device());
  // a launch goes to the current device: make it a's.
  const c10::cuda::CUDAGuard guard(a.device());
  torch::Tensor out = torch::empty_like(a);
  int64_t n = a.numel();
  if (n == 0) return out;  // a grid of 0 blocks is an error
  int64_t blocks = (n + kThreads - 1) / kThreads;
  elementwise_mult_kernel<<<blocks, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Binding: load sets the module's name, TORCH_EXTENSION_NAME. A library has one
// PYBIND11_MODULE.

// region binding
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("elementwise_mult", &elementwise_mult, "a * b", pybind11::arg("a"),
        pybind11::arg("b"));
}
// endregion
