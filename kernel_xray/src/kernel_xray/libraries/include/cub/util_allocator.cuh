// util_allocator.cuh: CUB's allocator of temporary storage. Nothing is cached: it is cudaMalloc and cudaFree.
#pragma once

#include "util_debug.cuh"

namespace cub {

struct CachingDeviceAllocator {
  static constexpr unsigned INVALID_BIN = ~0u;
  static constexpr size_t INVALID_SIZE = ~size_t{0};

  explicit CachingDeviceAllocator(bool = false, bool = false) {}
  explicit CachingDeviceAllocator(unsigned, unsigned = 1, unsigned = INVALID_BIN, size_t = INVALID_SIZE, bool = false,
                                  bool = false) {}

  cudaError_t DeviceAllocate(void** pointer, size_t bytes, cudaStream_t stream = nullptr) {
    return cudaMallocAsync(pointer, bytes, stream);
  }
  cudaError_t DeviceAllocate(int, void** pointer, size_t bytes, cudaStream_t stream = nullptr) {
    return DeviceAllocate(pointer, bytes, stream);
  }
  cudaError_t DeviceFree(void* pointer) { return cudaFree(pointer); }
  cudaError_t DeviceFree(int, void* pointer) { return cudaFree(pointer); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

}  // namespace cub
