// driver_devices.h: the driver interface's devices and their primary contexts. Each device has one context, which is the
// run-time interface's too: it is current where its device is, and always active. Others cannot be made. Of their memory,
// what asks about it.
#pragma once

#include <cstring>

#include "../cuda.h"

enum CUdevice_attribute {
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
  CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132,
#define SIMT_ENUMERATOR(name, driver, number, property) CU_DEVICE_ATTRIBUTE_##driver = number,
  SIMT_DEVICE_ATTRIBUTES(SIMT_ENUMERATOR)
#undef SIMT_ENUMERATOR
};

struct CUctx_st {};  // an element of an array of all devices' contexts, whose index is the device

namespace simt::driver {
inline CUctx_st contexts[64];

inline bool is_device(CUdevice device) {
  int count = 0;
  return !cudaGetDeviceCount(&count) && 0 <= device && device < count;
}
inline CUdevice current_device() {
  int device = 0;
  (void)cudaGetDevice(&device);
  return device;
}
}  // namespace simt::driver

inline CUresult cuDeviceGetCount(int* count) { return static_cast<CUresult>(cudaGetDeviceCount(count)); }
inline CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (!simt::driver::is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
inline CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  cudaDeviceProp properties;
  if (!name || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (cudaError_t error = cudaGetDeviceProperties(&properties, device)) return static_cast<CUresult>(error);
  std::strncpy(name, properties.name, bytes - 1)[bytes - 1] = '\0';
  return CUDA_SUCCESS;
}
inline CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  cudaDeviceProp properties;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (cudaError_t error = cudaGetDeviceProperties(&properties, device)) return static_cast<CUresult>(error);
  *bytes = properties.totalGlobalMem;
  return CUDA_SUCCESS;
}
inline CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {  // of driver_memory.h, which the run-time interface does not name
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      if (!value) return CUDA_ERROR_INVALID_VALUE;
      if (!simt::driver::is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return static_cast<CUresult>(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
  }
}

inline CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (!simt::driver::is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = &simt::driver::contexts[device];
  return CUDA_SUCCESS;
}
inline CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return simt::driver::is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
inline CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  if (!simt::driver::is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}
inline CUresult cuCtxGetDevice(CUdevice* device) { return static_cast<CUresult>(cudaGetDevice(device)); }
inline CUresult cuCtxGetCurrent(CUcontext* context) {
  return cuDevicePrimaryCtxRetain(context, simt::driver::current_device());
}
inline CUresult cuCtxSetCurrent(CUcontext context) {
  return context ? static_cast<CUresult>(cudaSetDevice(static_cast<int>(context - simt::driver::contexts)))
                 : CUDA_SUCCESS;
}
inline CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  *id = (context ? context - simt::driver::contexts : simt::driver::current_device()) + 1;
  return CUDA_SUCCESS;
}
inline CUresult cuCtxSynchronize() { return static_cast<CUresult>(cudaDeviceSynchronize()); }
inline CUresult cuMemGetInfo(size_t* free, size_t* total) { return static_cast<CUresult>(cudaMemGetInfo(free, total)); }
SIMT_API CUresult cuMemGetAddressRange(CUdeviceptr* start, size_t* bytes, CUdeviceptr pointer);
