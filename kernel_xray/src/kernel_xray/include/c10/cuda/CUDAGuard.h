// CUDAGuard.h: replaces PyTorch's header of this name: guards of the current device and of the current stream.
//
// There is one device, so a device guard only checks the index (0, or -1 for a CPU tensor). Stream guards set the
// current stream of this host thread and restore it at the end of their scope.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <c10/util/ArrayRef.h>

#include <optional>

namespace c10::cuda {

class CUDAGuard {
 public:
  explicit CUDAGuard() = delete;
  explicit CUDAGuard(DeviceIndex device_index) { set_index(device_index); }
  explicit CUDAGuard(Device device) { set_device(device); }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() {}  // not trivial, so that an unused guard draws no warning

  void set_device(Device device) { detail::check_device(device); }
  void reset_device(Device device) { detail::check_device(device); }
  void set_index(DeviceIndex device_index) { detail::check_index(device_index); }
  Device original_device() const { return detail::the_device(); }
  Device current_device() const { return detail::the_device(); }
};

class OptionalCUDAGuard {
 public:
  explicit OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) set_device(*device);
  }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> device_index) {
    if (device_index) set_index(*device_index);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;
  ~OptionalCUDAGuard() {}

  void set_device(Device device) {
    detail::check_device(device);
    set_ = true;
  }
  void reset_device(Device device) { set_device(device); }
  void set_index(DeviceIndex device_index) {
    detail::check_index(device_index);
    set_ = true;
  }
  std::optional<Device> original_device() const { return current_device(); }
  std::optional<Device> current_device() const {
    return set_ ? std::optional<Device>(detail::the_device()) : std::nullopt;
  }
  void reset() { set_ = false; }

 private:
  bool set_ = false;
};

class OptionalCUDAStreamGuard {
 public:
  explicit OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(Stream stream) { reset_stream(stream); }
  explicit OptionalCUDAStreamGuard(std::optional<Stream> stream) {
    if (stream) reset_stream(*stream);
  }
  OptionalCUDAStreamGuard(const OptionalCUDAStreamGuard&) = delete;
  OptionalCUDAStreamGuard& operator=(const OptionalCUDAStreamGuard&) = delete;
  ~OptionalCUDAStreamGuard() { reset(); }

  void reset_stream(Stream stream) {
    const CUDAStream next(stream);
    if (!original_) original_ = getCurrentCUDAStream();
    setCurrentCUDAStream(next);
  }
  std::optional<CUDAStream> original_stream() const { return original_; }
  std::optional<CUDAStream> current_stream() const {
    return original_ ? std::optional<CUDAStream>(getCurrentCUDAStream()) : std::nullopt;
  }
  void reset() {
    if (original_) setCurrentCUDAStream(*original_);
    original_.reset();
  }

 private:
  std::optional<CUDAStream> original_;
};

class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard() = delete;
  explicit CUDAStreamGuard(Stream stream) : guard_(stream) {}

  void reset_stream(Stream stream) { guard_.reset_stream(stream); }
  CUDAStream original_stream() const { return *guard_.original_stream(); }
  CUDAStream current_stream() const { return *guard_.current_stream(); }
  Device original_device() const { return detail::the_device(); }
  Device current_device() const { return detail::the_device(); }

 private:
  OptionalCUDAStreamGuard guard_;
};

class CUDAMultiStreamGuard {  // one stream for each device; there is one device, so the last stream counts
 public:
  explicit CUDAMultiStreamGuard(ArrayRef<CUDAStream> streams) {
    for (const CUDAStream& stream : streams) guard_.reset_stream(stream);
  }

 private:
  OptionalCUDAStreamGuard guard_;
};

}  // namespace c10::cuda
