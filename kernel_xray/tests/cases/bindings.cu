// bindings.cu: what operators use of PyTorch: dispatch by device, checks of tensors, guards, streams, launch checks.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraphsUtils.cuh>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <curand_kernel.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/ops.h>

#include "case.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

template <typename T>
__global__ void scale_kernel(const T* in, T* out, T factor, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * in[i];
}

// ------------------------------------------------------------------------------------------------------------------
// An operator registered with the key CUDA, and the schema in a fragment of the same namespace.

static Tensor scale(Tensor x, double factor) {
  STD_TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
  STD_TORCH_CHECK(x.scalar_type() == ScalarType::Float || x.scalar_type() == ScalarType::Double,
                  "x must be float32 or float64");
  STD_TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
  Tensor out = torch::stable::empty_like(x);
  const int64_t n = x.numel();
  if (n == 0) return out;
  void* stream = nullptr;
  STD_TORCH_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream) == 0, "no current stream");
  const unsigned blocks = unsigned((n + 255) / 256);
  if (x.scalar_type() == ScalarType::Float) {
    scale_kernel<float><<<blocks, 256, 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<const float*>(x.data_ptr()), static_cast<float*>(out.data_ptr()), float(factor), n);
  } else {
    scale_kernel<double><<<blocks, 256, 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<const double*>(x.data_ptr()), static_cast<double*>(out.data_ptr()), factor, n);
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

STABLE_TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, library) { library.def("scale(Tensor x, float factor) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, library) { library.impl("scale", TORCH_BOX(&scale)); }

// ------------------------------------------------------------------------------------------------------------------
// The older C++ interface: guard and stream from c10 and ATen.

CASE(current_stream) {
  const at::cuda::OptionalCUDAGuard guard(c10::Device(c10::DeviceType::CUDA, 0));
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  const c10::cuda::CUDAStream same = c10::cuda::getCurrentCUDAStream();
  EXPECT(same.stream() == stream && same == at::cuda::getCurrentCUDAStream());
  scale_kernel<float><<<1, call.size(0), 0, stream>>>(call.data<float>(0), call.data<float>(1), 3.0f, call.size(0));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  C10_CUDA_CHECK(cudaStreamSynchronize(at::cuda::getCurrentCUDAStream()));
  EXPECT(at::cuda::getCurrentDeviceProperties()->warpSize == 32);
}

// ------------------------------------------------------------------------------------------------------------------
// Checks that raise. `numbers` holds the threads of the block.

CASE(c10_launch_check) {
  scale_kernel<float><<<1, unsigned(call.number(0))>>>(call.data<float>(0), call.data<float>(1), 2.0f, call.size(0));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

CASE(stable_launch_check) {
  scale_kernel<float><<<1, unsigned(call.number(0))>>>(call.data<float>(0), call.data<float>(1), 2.0f, call.size(0));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

CASE(c10_check) {
  void* p = nullptr;
  C10_CUDA_CHECK(cudaMalloc(&p, size_t(call.number(0))));
  C10_CUDA_CHECK(cudaFree(p));
}

// ------------------------------------------------------------------------------------------------------------------
// Random numbers as PyTorch's own kernels draw them.

__global__ void uniform_kernel(float* out, at::PhiloxCudaState state) {
  const auto [seed, offset] = at::cuda::philox::unpack(state);
  curandStatePhilox4_32_10_t random;
  curand_init(seed, threadIdx.x, offset, &random);
  out[threadIdx.x] = curand_uniform(&random);
}

CASE(uniform) {
  const std::optional<at::Generator> given;
  auto* const generator =
      at::get_generator_or_default<at::CUDAGeneratorImpl>(given, at::cuda::detail::getDefaultCUDAGenerator());
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  uniform_kernel<<<1, call.size(0)>>>(call.data<float>(0), generator->philox_cuda_state(4));
}
