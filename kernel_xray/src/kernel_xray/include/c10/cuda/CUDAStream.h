// CUDAStream.h: replaces PyTorch's header of this name: streams, and the current stream of each host thread.
//
// A stream orders nothing here, since all work is done when a call returns. Its handle is valid in the run-time API and
// in <<<>>>. device() is the CPU, where the simulator's tensors are.
#pragma once

#include <c10/cuda/CUDAFunctions.h>

#include <c10/core/Stream.h>

#include <functional>
#include <ostream>
#include <tuple>

namespace c10::cuda {

static constexpr int max_compile_time_stream_priorities = 4;

class CUDAStream {
 public:
  enum Unchecked { UNCHECKED };

  explicit CUDAStream(Stream stream) : stream_(reinterpret_cast<cudaStream_t>(static_cast<intptr_t>(stream.id()))) {
    TORCH_CHECK(simt::stream_exists(stream_), "expected a CUDA stream, got ", stream);
  }
  explicit CUDAStream(Unchecked, Stream stream)
      : stream_(reinterpret_cast<cudaStream_t>(static_cast<intptr_t>(stream.id()))) {}

  bool operator==(const CUDAStream& other) const noexcept { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream& other) const noexcept { return stream_ != other.stream_; }

  operator cudaStream_t() const { return stream_; }
  operator Stream() const { return unwrap(); }

  cudaStream_t stream() const { return stream_; }
  StreamId id() const { return static_cast<StreamId>(reinterpret_cast<intptr_t>(stream_)); }
  Stream unwrap() const { return Stream(Stream::UNSAFE, detail::the_device(), id()); }

  DeviceType device_type() const { return DeviceType::CPU; }
  DeviceIndex device_index() const { return 0; }
  Device device() const { return detail::the_device(); }

  bool query() const {
    C10_CUDA_CHECK(cudaStreamQuery(stream_));
    return true;
  }
  void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(stream_)); }
  bool is_capturing() const { return false; }
  int priority() const {
    int value = 0;
    C10_CUDA_CHECK(cudaStreamGetPriority(stream_, &value));
    return value;
  }

  StreamData3 pack3() const { return unwrap().pack3(); }
  static CUDAStream unpack3(StreamId id, DeviceIndex index, DeviceType type) {
    return CUDAStream(Stream::unpack3(id, index, type));
  }

  static std::tuple<int, int> priority_range() {
    int least = 0, greatest = 0;
    C10_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    if (greatest < 1 - max_compile_time_stream_priorities) greatest = 1 - max_compile_time_stream_priorities;
    return {least, greatest};
  }

 private:
  cudaStream_t stream_;
};

// Wraps an existing stream, given by its handle.
inline CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device_index) {
  detail::check_index(device_index);
  return CUDAStream(
      Stream(Stream::UNSAFE, detail::the_device(), static_cast<StreamId>(reinterpret_cast<intptr_t>(stream))));
}

// One of 32 streams, round-robin; high priority has its own 32.
inline CUDAStream getStreamFromPool(const bool isHighPriority = false, DeviceIndex device = -1) {
  detail::check_index(device);
  return getStreamFromExternal(simt::stream_from_pool(isHighPriority), 0);
}
inline CUDAStream getStreamFromPool(const int priority, DeviceIndex device = -1) {
  return getStreamFromPool(priority < 0, device);
}

inline CUDAStream getDefaultCUDAStream(DeviceIndex device_index = -1) {
  return getStreamFromExternal(nullptr, device_index);
}
inline CUDAStream getCurrentCUDAStream(DeviceIndex device_index = -1) {
  return getStreamFromExternal(simt::current_stream(), device_index);
}
inline void setCurrentCUDAStream(CUDAStream stream) { simt::set_current_stream(stream); }

inline std::ostream& operator<<(std::ostream& out, const CUDAStream& stream) { return out << stream.unwrap(); }

}  // namespace c10::cuda

template <>
struct std::hash<c10::cuda::CUDAStream> {
  size_t operator()(c10::cuda::CUDAStream stream) const noexcept { return std::hash<c10::Stream>{}(stream.unwrap()); }
};
