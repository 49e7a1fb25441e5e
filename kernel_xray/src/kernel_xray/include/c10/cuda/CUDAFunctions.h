// CUDAFunctions.h: replaces PyTorch's header of this name: the current device, and waiting.
//
// There is one device, number 0. The index -1, which a CPU tensor has, means the current device.
#pragma once

#include <c10/cuda/CUDAException.h>

#include <c10/core/Device.h>

namespace c10::cuda {

namespace detail {

// Throws "invalid device ordinal" unless the index is 0 or -1.
inline void check_index(DeviceIndex index) {
  C10_CUDA_CHECK(simt::is_device_index(index) ? cudaSuccess : cudaErrorInvalidDevice);
}

// The device of the simulator's tensors.
inline Device the_device() { return Device(DeviceType::CPU); }

inline void check_device(Device device) {
  TORCH_CHECK(device.type() == DeviceType::CPU || device.type() == DeviceType::CUDA,
              "expected a device of the simulator (the CPU), got ", device);
  check_index(device.index());
}

}  // namespace detail

inline DeviceIndex device_count() noexcept { return 1; }
inline DeviceIndex device_count_ensure_non_zero() { return 1; }
inline DeviceIndex current_device() { return 0; }

inline void set_device(DeviceIndex device, bool /*force*/ = false) { detail::check_index(device); }
inline DeviceIndex ExchangeDevice(DeviceIndex device) {
  detail::check_index(device);
  return 0;
}
inline DeviceIndex MaybeExchangeDevice(DeviceIndex device) { return ExchangeDevice(device); }

inline cudaError_t GetDeviceCount(int* count) { return cudaGetDeviceCount(count); }
inline cudaError_t GetDevice(DeviceIndex* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t SetDevice(DeviceIndex device, bool /*force*/ = false) { return cudaSetDevice(device); }
inline cudaError_t MaybeSetDevice(DeviceIndex device) { return cudaSetDevice(device); }

inline void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
inline void stream_synchronize(cudaStream_t stream) { C10_CUDA_CHECK(cudaStreamSynchronize(stream)); }

inline void memcpy_and_sync(void* dst, const void* src, int64_t nbytes, cudaMemcpyKind kind, cudaStream_t stream) {
  C10_CUDA_CHECK(cudaMemcpyAsync(dst, src, static_cast<size_t>(nbytes), kind, stream));
  C10_CUDA_CHECK(cudaStreamSynchronize(stream));
}

inline bool hasPrimaryContext(DeviceIndex device) {
  detail::check_index(device);
  return true;
}

}  // namespace c10::cuda
