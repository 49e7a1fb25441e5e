// device.cpp: the properties and limits of the devices, which are all alike.
#include <atomic>
#include <cstring>
#include <optional>

#include "api/allocations.h"
#include "api/arrays.h"
#include "api/capture.h"
#include "api/device.h"
#include "api/devices.h"
#include "api/handles.h"
#include "api/textures.h"
#include "threads/stray.h"
#include "trace/trace.h"

namespace {

constexpr int kVersion = CUDART_VERSION;  // of the driver and the run-time

cudaDeviceProp make_properties() {
  cudaDeviceProp p = {};
  std::strcpy(p.name, "Kernel Ladder SIMT simulator");
  std::memcpy(p.uuid.bytes, "kernel-ladder-si", sizeof p.uuid.bytes);
  p.totalGlobalMem = simt::Allocations::instance().capacity();
  p.major = 9;
  p.multiProcessorCount = simt::kSms;
  p.warpSize = static_cast<int>(simt::kWarpSize);
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = simt::kThreadsPerBlock;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.maxThreadsPerMultiProcessor = simt::kThreadsPerSm;
  p.maxBlocksPerMultiProcessor = simt::kBlocksPerSm;
  p.regsPerBlock = p.regsPerMultiprocessor = simt::kRegistersPerSm;
  p.sharedMemPerBlock = simt::kSharedPerBlock;
  p.sharedMemPerBlockOptin = simt::kSharedPerBlockOptin;
  p.sharedMemPerMultiprocessor = simt::kSharedPerSm;
  p.reservedSharedMemPerBlock = simt::kSharedReserved;
  p.totalConstMem = 65536;
  p.l2CacheSize = 40 * 1024 * 1024;
  p.memPitch = 0x7fffffff;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.maxTexture1D = p.maxSurface1D = p.maxTexture2D[0] = p.maxTexture2D[1] = p.maxSurface2D[0] = p.maxSurface2D[1] =
      p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = p.maxTexture1DLayered[0] = p.maxTexture2DLayered[0] =
          p.maxTexture2DLayered[1] = simt::kLargestArray;
  p.maxTexture1DLayered[1] = p.maxTexture2DLayered[2] = simt::kMostLayers;
  p.maxTexture1DLinear = 1 << 28;
  p.canMapHostMemory = p.unifiedAddressing = p.managedMemory = p.concurrentManagedAccess = 1;
  p.cooperativeLaunch = p.clusterLaunch = 1;
  p.concurrentKernels = p.deviceOverlap = p.asyncEngineCount = p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.pageableMemoryAccess = p.pageableMemoryAccessUsesHostPageTables = p.canUseHostPointerForRegisteredMem = 1;
  return p;
}

cudaDeviceProp& properties() {
  static cudaDeviceProp p = make_properties();
  return p;
}

// The value of an attribute; null if the simulator does not know it.
std::optional<int> value_of(cudaDeviceAttr attribute) {
  const cudaDeviceProp& p = properties();
  switch (attribute) {
#define SIMT_VALUE(name, driver, number, property) \
  case cudaDevAttr##name:                          \
    return static_cast<int>(p.property);
    SIMT_DEVICE_ATTRIBUTES(SIMT_VALUE)
#undef SIMT_VALUE
    default:
      return std::nullopt;
  }
}

struct Limits {
  std::atomic<size_t> values[5] = {{1024}, {1 << 20}, {8 << 20}, {0}, {2048}};  // by cudaLimit; CUDA's defaults
};
Limits limits_of[simt::kMostDevices];

bool is_limit(cudaLimit limit) {
  return static_cast<unsigned>(limit) < sizeof Limits::values / sizeof *Limits::values &&
         limit != cudaLimitDevRuntimeSyncDepth;
}

cudaError_t with_result(const void* result) { return result ? cudaSuccess : simt::failed(cudaErrorInvalidValue); }

}  // namespace

int simt::compute_capability() { return properties().major; }
bool simt::set_compute_capability(int major) {
  properties().major = major;
  return true;
}

cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* result, int device) {
  if (!result) return simt::failed(cudaErrorInvalidValue);
  if (!simt::is_device(device)) return simt::failed(cudaErrorInvalidDevice);
  *result = properties();
  result->uuid.bytes[sizeof result->uuid.bytes - 1] = static_cast<char>('i' + device);
  result->pciBusID = device;
  result->multiProcessorCount = simt::trace::told_sms(simt::kSms);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!simt::is_device(device)) return simt::failed(cudaErrorInvalidDevice);
  const std::optional<int> found = value_of(attribute);
  if (!value || !found) return simt::failed(cudaErrorInvalidValue);
  *value = attribute == cudaDevAttrMultiProcessorCount ? simt::trace::told_sms(simt::kSms) : *found;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (simt::in_kernel())
    simt::fault("host-call",
                "cudaDeviceSynchronize was called in a kernel; CUDA 12 removed it there: a kernel cannot "
                "wait for the kernels that it launches");
  simt::StreamWatch::current().waited("cudaDeviceSynchronize");
  if (const auto answer = simt::refused_by_capture(simt::Unsafe::wait)) return *answer;
  return simt::pending_fault();
}

cudaError_t cudaDeviceReset() {
  if (cudaError_t fault = simt::begin_work("cudaDeviceReset")) return fault;
  const int device = simt::current_device();
  simt::last_error(true);
  simt::forget_textures(device);
  simt::forget_arrays(device);
  simt::Allocations::instance().release_all(device);
  if (simt::device_count() == 1) {  // a graph may belong to several devices
    simt::forget_captures();
    simt::forget_graphs();
  }
  simt::forget_streams(device);
  simt::forget_events(device);
  simt::forget_functions(device);
  simt::forget_peers(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if (!is_limit(limit)) return simt::failed(cudaErrorUnsupportedLimit);
  if (value) *value = limits_of[simt::current_device()].values[limit];
  return with_result(value);
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (!is_limit(limit)) return simt::failed(cudaErrorUnsupportedLimit);
  limits_of[simt::current_device()].values[limit] = value;
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
