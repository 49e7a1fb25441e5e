// CUDAGeneratorImpl.h: replaces PyTorch's header of this name: a kernel's random numbers begin where the generator of
// the CPU says, of this call or PyTorch's own, so torch.manual_seed() repeats them.
//
// Deviation from PyTorch: the seed of each call is drawn from the generator, and the offset is 0. A GPU keeps the seed
// and counts offsets, so its numbers are others.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/PhiloxCudaState.h>

#include <utility>

namespace at {

struct CUDAGeneratorImpl : CPUGeneratorImpl {  // without members: a generator of the CPU is used as one
  static DeviceType device_type() { return DeviceType::CPU; }
  PhiloxCudaState philox_cuda_state(uint64_t) { return {random64(), 0}; }
  std::pair<uint64_t, uint64_t> philox_engine_inputs(uint64_t) { return {random64(), 0}; }
};

namespace cuda::detail {

inline const Generator& getDefaultCUDAGenerator(DeviceIndex = -1) { return at::detail::getDefaultCPUGenerator(); }
inline Generator createCUDAGenerator(DeviceIndex = -1) { return at::detail::createCPUGenerator(); }

}  // namespace cuda::detail

}  // namespace at
