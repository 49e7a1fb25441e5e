// memory_resource.h: where Thrust's device vectors get their memory: from cudaMalloc, as with NVIDIA's back end, so that
// kernels may use it and running off its end faults. Replaces the header of this name of NVIDIA's Thrust, which runs here
// with its back end for the CPU (THRUST_DEVICE_SYSTEM_CPP).
#pragma once

#include <thrust/detail/config.h>
#include <thrust/mr/fancy_pointer_resource.h>
#include <thrust/mr/memory_resource.h>
#include <thrust/system/cpp/pointer.h>

#include <cstddef>
#include <new>

#include "../../../simt/runtime_api.h"

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cpp {
namespace detail {

// Device memory, or managed memory, which the host may use too.
template <bool managed>
struct simt_resource final : thrust::mr::memory_resource<> {
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* memory = nullptr;
    if (bytes == 0) return memory;
    if ((managed ? cudaMallocManaged(&memory, bytes) : cudaMalloc(&memory, bytes)) != cudaSuccess)
      throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override { cudaFree(memory); }
};

// What thrust::device_malloc and thrust::device_free find.
inline void* malloc(tag&, std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
}
template <typename Pointer>
void free(tag&, Pointer pointer) {
  cudaFree(thrust::raw_pointer_cast(pointer));
}

}  // namespace detail

using memory_resource = thrust::mr::fancy_pointer_resource<detail::simt_resource<false>, thrust::cpp::pointer<void>>;
using universal_memory_resource =
    thrust::mr::fancy_pointer_resource<detail::simt_resource<true>, thrust::cpp::universal_pointer<void>>;
using universal_host_pinned_memory_resource = universal_memory_resource;

}  // namespace cpp
}  // namespace system
THRUST_NAMESPACE_END
