// CUDAMacros.h: replaces PyTorch's header of this name, included by all the others here.
//
// In the simulator, tensors live on the CPU and libc10_cuda does not exist. These headers implement PyTorch's names
// with the simulator's run-time API. As PyTorch's do, they refuse to be part of a stable-ABI extension.
#pragma once

#if defined(TORCH_STABLE_ONLY) || defined(TORCH_TARGET_VERSION)
#error "c10/cuda and ATen/cuda are not in the stable ABI: include torch/csrc/stable/accelerator.h or macros.h instead"
#endif

#define C10_CUDA_EXPORT __attribute__((visibility("default")))
#define C10_CUDA_IMPORT C10_CUDA_EXPORT
#define C10_CUDA_API C10_CUDA_EXPORT
#define C10_COMPILE_TIME_MAX_GPUS 120

namespace c10::cuda {}
namespace at::cuda {
using namespace c10::cuda;
}
