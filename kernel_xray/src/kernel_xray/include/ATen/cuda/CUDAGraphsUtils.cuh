// CUDAGraphsUtils.cuh: replaces PyTorch's header of this name, of which kernels use what it includes: unpack().
#pragma once

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/PhiloxUtils.cuh>

namespace at::cuda {

inline void assertNotCapturing(const std::string&) {}  // PyTorch captures nothing on the CPU

}  // namespace at::cuda
