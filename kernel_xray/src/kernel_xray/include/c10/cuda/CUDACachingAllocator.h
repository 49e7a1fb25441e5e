// CUDACachingAllocator.h: replaces PyTorch's header of this name: memory without a tensor around it.
//
// raw_alloc is cudaMalloc, and nothing is cached. get() is PyTorch's CPU allocator, so that its memory can become a
// tensor of the simulator.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace c10::cuda::CUDACachingAllocator {

inline void* raw_alloc(size_t nbytes) {
  void* pointer = nullptr;
  C10_CUDA_CHECK(cudaMalloc(&pointer, nbytes));
  return pointer;
}
inline void* raw_alloc_with_stream(size_t nbytes, cudaStream_t stream) {
  void* pointer = nullptr;
  C10_CUDA_CHECK(cudaMallocAsync(&pointer, nbytes, stream));
  return pointer;
}
inline void raw_delete(void* pointer) { C10_CUDA_CHECK(cudaFree(pointer)); }

inline c10::Allocator* get() { return c10::GetCPUAllocator(); }
inline void emptyCache() {}
inline void recordStream(const c10::DataPtr&, CUDAStream) {}  // memory is not reused while a stream could need it

}  // namespace c10::cuda::CUDACachingAllocator
