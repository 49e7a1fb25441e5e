// runtime_api.h: CUDA's run-time API as far as host code of tutorials and PyTorch extensions uses it.
//
// The model. There is one device, imaginary (device_types.h), or several (runtime_devices.h). Their memory is a reserved range of the host's address
// space: cudaMalloc returns pages of that range, an unmapped page follows each allocation, and freed pages are
// unmapped, so a kernel that runs off the end or uses freed memory faults as on a GPU. Fresh memory is filled with 0xFF
// bytes (NaN as float, -1 as int). All work is done when a call returns: copies, streams and events have CUDA's rules
// for arguments and handles, and nothing is left to run later.
//
// Errors. A failing call returns its code and leaves it for cudaGetLastError, per host thread. A kernel's fault
// (illegal address, assert, ...) is sticky: every call that waits for results reports it (synchronising, querying,
// copying from the device) until new work begins: a launch, an allocation, a copy to the device, or
// cudaDeviceReset. That deviates from CUDA, where the process has to end; a notebook has to go on. In a program with a
// main() a fault is final, as with CUDA.
//
// Other deviations: host code can read device memory through a pointer; pointers that no call here returned (such as
// those of CPU tensors, which represent CUDA tensors) are valid on either side; cudaEventElapsedTime measures this
// machine and says so; IPC is refused (runtime_refused.h).
#pragma once

#include "device_types.h"
#include "runtime_devices.h"
#include "runtime_driver.h"
#include "runtime_refused.h"
#include "runtime_types.h"

#define CUDART_VERSION 13000

// ---------------------------------------------------------------------------------------------------------------
// Errors

SIMT_API const char* cudaGetErrorString(cudaError_t error);
SIMT_API const char* cudaGetErrorName(cudaError_t error);
SIMT_API cudaError_t cudaGetLastError();
SIMT_API cudaError_t cudaPeekAtLastError();

// ---------------------------------------------------------------------------------------------------------------
// The device

SIMT_API cudaError_t cudaSetDeviceFlags(unsigned flags);
SIMT_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
SIMT_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
SIMT_API cudaError_t cudaDeviceSynchronize();
SIMT_API cudaError_t cudaDeviceReset();  // frees the current device's memory, streams and events, and forgets errors
SIMT_API cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit);
SIMT_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value);  // no effect here beyond the check
SIMT_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
SIMT_API cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config);
SIMT_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
SIMT_API cudaError_t cudaDriverGetVersion(int* version);
SIMT_API cudaError_t cudaRuntimeGetVersion(int* version);
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }

// ---------------------------------------------------------------------------------------------------------------
// Memory. Sizes in bytes.

SIMT_API cudaError_t cudaMalloc(void** pointer, size_t bytes);
SIMT_API cudaError_t cudaFree(void* pointer);
SIMT_API cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal);
SIMT_API cudaError_t cudaMallocHost(void** pointer, size_t bytes, unsigned flags = 0);
SIMT_API cudaError_t cudaFreeHost(void* pointer);
SIMT_API cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height);
SIMT_API cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream);
SIMT_API cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream);
SIMT_API cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags);
SIMT_API cudaError_t cudaHostUnregister(void* pointer);
SIMT_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
SIMT_API cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
SIMT_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
SIMT_API cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                                          cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice, int device);
SIMT_API cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                                   cudaMemLocation location);

inline cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return cudaMallocHost(pointer, bytes, flags);
}

namespace simt::detail {
inline void** untyped(void* pointer) { return static_cast<void**>(pointer); }  // of pointers to volatile things too
}  // namespace simt::detail

// As in CUDA's C++ interface, any type of pointer is accepted.
template <typename T>
cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  return cudaMalloc(simt::detail::untyped(pointer), bytes);
}
template <typename T>
cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(simt::detail::untyped(pointer), bytes, flags);
}
template <typename T>
cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned flags = 0) {
  return cudaMallocHost(simt::detail::untyped(pointer), bytes, flags);
}
template <typename T>
cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned flags) {
  return cudaMallocHost(simt::detail::untyped(pointer), bytes, flags);
}
template <typename T>
cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  return cudaMallocPitch(simt::detail::untyped(pointer), pitch, width, height);
}
template <typename T>
cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(simt::detail::untyped(pointer), bytes, stream);
}
template <typename T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(simt::detail::untyped(device), host, flags);
}

// ---------------------------------------------------------------------------------------------------------------
// Copies. Pitches, widths and counts in bytes, heights in rows.

SIMT_API cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind kind);
SIMT_API cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind kind,
                                     cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                  size_t height, cudaMemcpyKind kind);
SIMT_API cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                       size_t height, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemset(void* pointer, int byte, size_t count);
SIMT_API cudaError_t cudaMemsetAsync(void* pointer, int byte, size_t count, cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemset2D(void* pointer, size_t pitch, int byte, size_t width, size_t height);
SIMT_API cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int byte, size_t width, size_t height,
                                       cudaStream_t stream = nullptr);

// ---------------------------------------------------------------------------------------------------------------
// Streams and events

SIMT_API cudaError_t cudaStreamCreate(cudaStream_t* stream);
SIMT_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
SIMT_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
SIMT_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
SIMT_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
SIMT_API cudaError_t cudaStreamQuery(cudaStream_t stream);
SIMT_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = cudaEventWaitDefault);
SIMT_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
SIMT_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags);
SIMT_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data,
                                           unsigned flags);
SIMT_API cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes = 0,
                                              unsigned flags = cudaMemAttachSingle);
SIMT_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data);
SIMT_API cudaError_t cudaEventCreate(cudaEvent_t* event);
SIMT_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
SIMT_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned flags = 0);
SIMT_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
SIMT_API cudaError_t cudaEventQuery(cudaEvent_t event);
SIMT_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
SIMT_API cudaError_t cudaEventDestroy(cudaEvent_t event);
SIMT_API cudaError_t cudaProfilerStart();  // nothing profiles
SIMT_API cudaError_t cudaProfilerStop();

#include "runtime_functions.h"  // what CUDA declares as templates over symbols and kernels
#include "runtime_graphs.h"
#include "runtime_launch.h"
#include "runtime_textures.h"
