// CUDAContextLight.h: replaces PyTorch's header of this name: properties of the device and its allocator. The handles
// of NVIDIA's libraries are refused.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

namespace at::cuda {

inline int64_t getNumGPUs() { return c10::cuda::device_count(); }
inline bool is_available() { return true; }
inline int warp_size() { return static_cast<int>(simt::kWarpSize); }

inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp value;
    C10_CUDA_CHECK(cudaGetDeviceProperties(&value, 0));
    return value;
  }();
  c10::cuda::detail::check_index(device);
  return &properties;
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(0); }

inline bool canDeviceAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer_device) {
  c10::cuda::detail::check_index(device);
  c10::cuda::detail::check_index(peer_device);
  return false;
}

inline c10::Allocator* getCUDADeviceAllocator() { return c10::cuda::CUDACachingAllocator::get(); }

#define SIMT_NO_LIBRARY "cuBLAS, cuSPARSE and cuSOLVER; call an ATen operator (at::mm, at::addmm, ...) instead"
SIMT_REFUSED(SIMT_NO_LIBRARY) void* getCurrentCUDABlasHandle();
SIMT_REFUSED(SIMT_NO_LIBRARY) void* getCurrentCUDABlasLtHandle();
SIMT_REFUSED(SIMT_NO_LIBRARY) void* getCurrentCUDASparseHandle();
SIMT_REFUSED(SIMT_NO_LIBRARY) void* getCurrentCUDASolverDnHandle();

}  // namespace at::cuda
