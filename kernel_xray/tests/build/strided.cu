// For test_xray_command.py: one kernel coalesced or strided, one that reads past the end, one that races.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

using torch::stable::Tensor;

__global__ void scale_kernel(const float* x, float* out, float a, int n, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = i % stride * (n / stride) + i / stride;
  if (j < n) out[j] = a * x[j];  // <- scaled
}

__global__ void past_end_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = x[i];  // <- past the end
}

__global__ void race_kernel(float* out) {
  __shared__ float last;
  last = threadIdx.x;  // <- race
  out[threadIdx.x] = last;
}

Tensor scale(const Tensor& x, double a, int64_t stride) {
  Tensor out = torch::stable::empty_like(x);
  int n = static_cast<int>(x.numel());
  if (n == 0) return out;
  scale_kernel<<<(n + 255) / 256, 256>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), float(a), n, static_cast<int>(stride));
  return out;
}

Tensor past_end(const Tensor& x) {
  Tensor out = torch::stable::empty_like(x);
  past_end_kernel<<<1, 64>>>(x.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
                                                           static_cast<int>(x.numel()));
  return out;
}

Tensor race(const Tensor& x) {
  Tensor out = torch::stable::empty_like(x);
  race_kernel<<<1, 64>>>(out.mutable_data_ptr<float>());
  return out;
}

STABLE_TORCH_LIBRARY(strided, m) {
  m.def("scale(Tensor x, float a, int stride) -> Tensor");
  m.def("past_end(Tensor x) -> Tensor");
  m.def("race(Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(strided, CUDA, m) {
  m.impl("scale", TORCH_BOX(&scale));
  m.impl("past_end", TORCH_BOX(&past_end));
  m.impl("race", TORCH_BOX(&race));
}
