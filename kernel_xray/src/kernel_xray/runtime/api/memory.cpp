// memory.cpp: cudaMalloc, cudaFree and their relatives; queries of memory and pointers.
#include "../../include/cuda.h"
#include "api/allocations.h"
#include "api/capture.h"
#include "api/copies.h"
#include "api/devices.h"
#include "api/handles.h"
#include "api/host_call.h"

#include <mutex>
#include <map>

namespace {

using simt::Allocation;
using simt::Allocations;
using simt::MemoryKind;

constexpr size_t kPitchUnit = 512;  // bytes; rows of cudaMallocPitch begin at multiples of it

// Allocating and freeing may synchronise, and a graph here has no nodes that do either in a stream's order.
std::optional<cudaError_t> refused() { return simt::refused_by_capture(simt::Unsafe::call); }
std::optional<cudaError_t> refused(cudaStream_t stream) {
  if (!simt::capturing() || !simt::invalidate_capture(stream)) return std::nullopt;
  return simt::failed(cudaErrorNotSupported);
}

cudaError_t allocate(const char* function, void** pointer, size_t bytes, MemoryKind kind,
                     cudaStream_t stream = nullptr) {
  if (cudaError_t fault = simt::begin_work(function)) return fault;
  if (!pointer) return simt::failed(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;  // as in CUDA: success, and no memory
  *pointer = Allocations::instance().allocate(bytes, kind, simt::stream_device(stream));
  return *pointer ? cudaSuccess : simt::failed(cudaErrorMemoryAllocation);
}

// Freeing is not new work and waits for nothing that could fail, so a destructor may free memory after a fault.
cudaError_t release(const char* function, void* pointer, bool host) {
  simt::host_only(function);
  if (cudaError_t fault = simt::final_fault()) return fault;
  if (!pointer) return cudaSuccess;
  Allocation found;
  if (!Allocations::instance().find(pointer, found) || (found.kind == MemoryKind::host) != host ||
      !Allocations::instance().release(pointer))
    return simt::failed(cudaErrorInvalidValue);
  return cudaSuccess;
}

class Registered {  // host memory registered with cudaHostRegister
 public:
  static Registered& instance() { return simt::lasting<Registered>(); }
  cudaError_t add(void* pointer, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uintptr_t start = reinterpret_cast<uintptr_t>(pointer);
    auto next = ranges_.lower_bound(start);
    const bool over_next = next != ranges_.end() && next->first - start < bytes;
    const bool over_last = next != ranges_.begin() && start - std::prev(next)->first < std::prev(next)->second;
    if (over_next || over_last) return cudaErrorHostMemoryAlreadyRegistered;
    ranges_[start] = bytes;
    return cudaSuccess;
  }
  cudaError_t remove(void* pointer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ranges_.erase(reinterpret_cast<uintptr_t>(pointer)) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  }
  bool holds(const void* pointer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto next = ranges_.upper_bound(reinterpret_cast<uintptr_t>(pointer));
    return next != ranges_.begin() &&
           reinterpret_cast<uintptr_t>(pointer) - std::prev(next)->first < std::prev(next)->second;
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, size_t> ranges_;
};

cudaError_t reported(cudaError_t code) { return code == cudaSuccess ? code : simt::failed(code); }

cudaError_t advise(const char* function, const void* pointer, size_t bytes, bool known_location) {
  simt::host_only(function);
  Allocation found;
  const bool managed = Allocations::instance().find(pointer, found) && found.kind == MemoryKind::managed;
  const size_t offset = managed ? reinterpret_cast<uintptr_t>(pointer) - found.start : 0;
  if (!known_location) return simt::failed(cudaErrorInvalidDevice);
  if (!managed || bytes == 0 || bytes > found.bytes - offset) return simt::failed(cudaErrorInvalidValue);
  return cudaSuccess;
}

bool is_location(int device) { return simt::is_device(device) || device == cudaCpuDeviceId; }
bool is_location(cudaMemLocation location) {
  return location.type == cudaMemLocationTypeHost ||
         (location.type == cudaMemLocationTypeDevice && simt::is_device(location.id));
}

}  // namespace

bool simt::is_registered(const void* pointer) { return Registered::instance().holds(pointer); }

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (const auto answer = refused()) return *answer;
  return allocate("cudaMalloc", pointer, bytes, MemoryKind::device);
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (const auto answer = refused(stream)) return *answer;
  return allocate("cudaMallocAsync", pointer, bytes, MemoryKind::device, stream);
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  if ((flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) || bytes == 0)
    return simt::failed(cudaErrorInvalidValue);
  if (const auto answer = refused()) return *answer;
  return allocate("cudaMallocManaged", pointer, bytes, MemoryKind::managed);
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes, unsigned flags) {
  if (flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
    return simt::failed(cudaErrorInvalidValue);
  if (const auto answer = refused()) return *answer;
  return allocate("cudaMallocHost", pointer, bytes, MemoryKind::host);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (!pitch || width > SIZE_MAX - kPitchUnit) return simt::failed(cudaErrorInvalidValue);
  *pitch = (width + kPitchUnit - 1) / kPitchUnit * kPitchUnit;
  if (height && *pitch > SIZE_MAX / height) return simt::failed(cudaErrorMemoryAllocation);
  return allocate("cudaMallocPitch", pointer, *pitch * height, MemoryKind::device);
}

cudaError_t cudaFree(void* pointer) {
  if (const auto answer = refused()) return *answer;
  return release("cudaFree", pointer, false);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (const auto answer = refused()) return *answer;
  return release("cudaFreeHost", pointer, true);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (const auto answer = refused(stream)) return *answer;
  return release("cudaFreeAsync", pointer, false);
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  simt::host_only("cudaHostRegister");
  constexpr unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
  if (!pointer || bytes == 0 || (flags & ~known) || Allocations::instance().in_range(pointer))
    return simt::failed(cudaErrorInvalidValue);
  return reported(Registered::instance().add(pointer, bytes));
}

cudaError_t cudaHostUnregister(void* pointer) { return reported(Registered::instance().remove(pointer)); }

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  Allocation found;
  const bool pinned = (Allocations::instance().find(host, found) && found.kind == MemoryKind::host) ||
                      Registered::instance().holds(host);
  if (!device || flags != 0 || !pinned) return simt::failed(cudaErrorInvalidValue);
  *device = host;  // one address space, as with unified addressing
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  simt::host_only("cudaMemGetInfo");
  if (!free || !total) return simt::failed(cudaErrorInvalidValue);
  *total = Allocations::instance().capacity();
  *free = *total - Allocations::instance().used(simt::current_device());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (!attributes || !pointer) return simt::failed(cudaErrorInvalidValue);
  void* address = const_cast<void*>(pointer);
  Allocation found;
  if (Allocations::instance().find(pointer, found)) {
    if (found.kind == MemoryKind::device) *attributes = {cudaMemoryTypeDevice, found.device, address, nullptr};
    if (found.kind == MemoryKind::host) *attributes = {cudaMemoryTypeHost, found.device, address, address};
    if (found.kind == MemoryKind::managed) *attributes = {cudaMemoryTypeManaged, found.device, address, address};
  } else if (Registered::instance().holds(pointer)) {
    *attributes = {cudaMemoryTypeHost, 0, address, address};
  } else {
    *attributes = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, address};
  }
  return cudaSuccess;
}

CUresult cuMemGetAddressRange(CUdeviceptr* start, size_t* bytes, CUdeviceptr pointer) {
  Allocation found;
  if (!Allocations::instance().find(reinterpret_cast<const void*>(pointer), found)) return CUDA_ERROR_NOT_FOUND;
  if (start) *start = found.start;
  if (bytes) *bytes = found.bytes;
  return CUDA_SUCCESS;
}

// Host and kernels share managed memory anyway; prefetches and advice are checked and have no effect.
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, cudaStream_t stream) {
  if (!simt::stream_exists(stream)) return simt::no_stream();
  return advise("cudaMemPrefetchAsync", pointer, bytes, is_location(device));
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (flags != 0) return simt::failed(cudaErrorInvalidValue);
  return advise("cudaMemPrefetchAsync", pointer, bytes, is_location(location));
}

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, int device) {
  return advise("cudaMemAdvise", pointer, bytes, is_location(device));
}

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation location) {
  return advise("cudaMemAdvise", pointer, bytes, is_location(location));
}
