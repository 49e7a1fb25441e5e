// device.cpp: the one device, its properties and its limits.
#include <atomic>
#include <cstring>

#include "allocations.h"
#include "device.h"
#include "handles.h"

namespace {

constexpr int kVersion = CUDART_VERSION;  // of driver and run-time alike

cudaDeviceProp make_properties() {
  cudaDeviceProp p = {};
  std::strcpy(p.name, "Kernel Ladder SIMT simulator");
  std::memcpy(p.uuid.bytes, "kernel-ladder-si", sizeof p.uuid.bytes);
  p.totalGlobalMem = simt::Allocations::instance().capacity();
  p.major = 8;
  p.multiProcessorCount = simt::kMultiprocessors;
  p.warpSize = static_cast<int>(simt::kWarpSize);
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = simt::kThreadsPerBlock;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.maxThreadsPerMultiProcessor = simt::kThreadsPerMultiprocessor;
  p.maxBlocksPerMultiProcessor = simt::kBlocksPerMultiprocessor;
  p.regsPerBlock = p.regsPerMultiprocessor = simt::kRegistersPerMultiprocessor;
  p.sharedMemPerBlock = simt::kSharedPerBlock;
  p.sharedMemPerBlockOptin = simt::kSharedPerBlockOptin;
  p.sharedMemPerMultiprocessor = simt::kSharedPerMultiprocessor;
  p.reservedSharedMemPerBlock = simt::kSharedReserved;
  p.totalConstMem = 65536;
  p.l2CacheSize = 40 * 1024 * 1024;
  p.memPitch = 0x7fffffff;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.canMapHostMemory = p.unifiedAddressing = p.managedMemory = p.concurrentManagedAccess = 1;
  p.concurrentKernels = p.deviceOverlap = p.asyncEngineCount = p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.pageableMemoryAccess = p.pageableMemoryAccessUsesHostPageTables = p.canUseHostPointerForRegisteredMem = 1;
  return p;
}

const cudaDeviceProp& properties() {
  static const cudaDeviceProp p = make_properties();
  return p;
}

// The value of an attribute, or -1.
int attribute_value(cudaDeviceAttr attribute) {
  const cudaDeviceProp& p = properties();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return p.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return p.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return p.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return p.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return p.maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return p.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return p.maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(p.sharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory: return static_cast<int>(p.totalConstMem);
    case cudaDevAttrWarpSize: return p.warpSize;
    case cudaDevAttrMaxPitch: return static_cast<int>(p.memPitch);
    case cudaDevAttrMaxRegistersPerBlock: return p.regsPerBlock;
    case cudaDevAttrClockRate: return p.clockRate;
    case cudaDevAttrTextureAlignment: return static_cast<int>(p.textureAlignment);
    case cudaDevAttrGpuOverlap: return p.deviceOverlap;
    case cudaDevAttrMultiProcessorCount: return p.multiProcessorCount;
    case cudaDevAttrKernelExecTimeout: return p.kernelExecTimeoutEnabled;
    case cudaDevAttrIntegrated: return p.integrated;
    case cudaDevAttrCanMapHostMemory: return p.canMapHostMemory;
    case cudaDevAttrComputeMode: return p.computeMode;
    case cudaDevAttrConcurrentKernels: return p.concurrentKernels;
    case cudaDevAttrEccEnabled: return p.ECCEnabled;
    case cudaDevAttrMemoryClockRate: return p.memoryClockRate;
    case cudaDevAttrGlobalMemoryBusWidth: return p.memoryBusWidth;
    case cudaDevAttrL2CacheSize: return p.l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount: return p.asyncEngineCount;
    case cudaDevAttrUnifiedAddressing: return p.unifiedAddressing;
    case cudaDevAttrComputeCapabilityMajor: return p.major;
    case cudaDevAttrComputeCapabilityMinor: return p.minor;
    case cudaDevAttrStreamPrioritiesSupported: return p.streamPrioritiesSupported;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(p.sharedMemPerMultiprocessor);
    case cudaDevAttrMaxRegistersPerMultiprocessor: return p.regsPerMultiprocessor;
    case cudaDevAttrManagedMemory: return p.managedMemory;
    case cudaDevAttrPageableMemoryAccess: return p.pageableMemoryAccess;
    case cudaDevAttrConcurrentManagedAccess: return p.concurrentManagedAccess;
    case cudaDevAttrCooperativeLaunch: return p.cooperativeLaunch;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(p.sharedMemPerBlockOptin);
    case cudaDevAttrHostRegisterSupported: return p.hostRegisterSupported;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return p.maxBlocksPerMultiProcessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return static_cast<int>(p.reservedSharedMemPerBlock);
    case cudaDevAttrMemoryPoolsSupported: return p.memoryPoolsSupported;
    case cudaDevAttrClusterLaunch: return p.clusterLaunch;
  }
  return -1;
}

std::atomic<size_t> limits[] = {{1024}, {1 << 20}, {8 << 20}};  // bytes, by cudaLimit; CUDA's defaults

bool is_limit(cudaLimit limit) { return static_cast<unsigned>(limit) < sizeof limits / sizeof *limits; }

cudaError_t with_result(const void* result) { return result ? cudaSuccess : simt::failed(cudaErrorInvalidValue); }

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  if (count) *count = 1;
  return with_result(count);
}

cudaError_t cudaGetDevice(int* device) {
  if (device) *device = 0;
  return with_result(device);
}

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : simt::failed(cudaErrorInvalidDevice); }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* result, int device) {
  if (!result) return simt::failed(cudaErrorInvalidValue);
  if (device != 0) return simt::failed(cudaErrorInvalidDevice);
  *result = properties();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return simt::failed(cudaErrorInvalidDevice);
  if (!value || attribute_value(attribute) < 0) return simt::failed(cudaErrorInvalidValue);
  *value = attribute_value(attribute);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  if (device != 0 || peer != 0) return simt::failed(cudaErrorInvalidDevice);
  if (can_access) *can_access = 0;  // a device is not its own peer
  return with_result(can_access);
}

cudaError_t cudaDeviceSynchronize() {
  simt::host_only("cudaDeviceSynchronize");
  return simt::pending_fault();
}

cudaError_t cudaDeviceReset() {
  simt::begin_work("cudaDeviceReset");
  simt::last_error(true);
  simt::Allocations::instance().release_all();
  simt::forget_streams();
  simt::forget_events();
  simt::forget_functions();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if (!is_limit(limit)) return simt::failed(cudaErrorUnsupportedLimit);
  if (value) *value = limits[limit];
  return with_result(value);
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (!is_limit(limit)) return simt::failed(cudaErrorUnsupportedLimit);
  limits[limit] = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaDriverGetVersion(int* version) {
  if (version) *version = kVersion;
  return with_result(version);
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
