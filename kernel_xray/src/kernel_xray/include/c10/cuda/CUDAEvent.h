// CUDAEvent.h: replaces PyTorch's header of this name: an event that is created when it is first recorded.
//
// elapsed_time is the time of this machine, not a GPU's, and says so once (cudaEventElapsedTime).
#pragma once

#include <c10/cuda/CUDAGuard.h>

#include <utility>

namespace c10::cuda {

class CUDAEvent {
 public:
  CUDAEvent() noexcept = default;
  CUDAEvent(unsigned int flags) noexcept : flags_(flags) {}
  CUDAEvent(const CUDAEvent&) = delete;
  CUDAEvent& operator=(const CUDAEvent&) = delete;
  CUDAEvent(CUDAEvent&& other) noexcept { swap(other); }
  CUDAEvent& operator=(CUDAEvent&& other) noexcept {
    swap(other);
    return *this;
  }
  ~CUDAEvent() {
    if (event_) C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event_));
  }

  operator cudaEvent_t() const { return event_; }
  cudaEvent_t event() const { return event_; }
  friend bool operator<(const CUDAEvent& left, const CUDAEvent& right) { return left.event_ < right.event_; }

  bool isCreated() const { return event_ != nullptr; }
  DeviceIndex device_index() const { return event_ ? 0 : -1; }
  std::optional<Device> device() const { return event_ ? std::optional<Device>(detail::the_device()) : std::nullopt; }

  void create(DeviceIndex device_index) {
    detail::check_index(device_index);
    if (!event_) C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags_));
  }
  void record() { record(getCurrentCUDAStream()); }
  void record(const CUDAStream& stream) {
    create(stream.device_index());
    C10_CUDA_CHECK(cudaEventRecord(event_, stream));
    recorded_ = true;
  }
  void recordOnce(const CUDAStream& stream) {
    if (!recorded_) record(stream);
  }
  void block(const CUDAStream& stream) {
    if (event_) C10_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, cudaEventWaitDefault));
  }
  bool query() const {
    if (event_) C10_CUDA_CHECK(cudaEventQuery(event_));
    return true;
  }
  void synchronize() const {
    if (event_) C10_CUDA_CHECK(cudaEventSynchronize(event_));
  }

  float elapsed_time(const CUDAEvent& other) const {  // milliseconds
    TORCH_CHECK_VALUE(!(flags_ & cudaEventDisableTiming) && !(other.flags_ & cudaEventDisableTiming),
                      "both events must keep time: create them with cudaEventDefault (enable_timing=True)");
    TORCH_CHECK_VALUE(recorded_ && other.recorded_,
                      "both events must be recorded before the time between them is read");
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event_, other.event_));
    return milliseconds;
  }

 private:
  void swap(CUDAEvent& other) noexcept {
    std::swap(flags_, other.flags_);
    std::swap(recorded_, other.recorded_);
    std::swap(event_, other.event_);
  }

  unsigned int flags_ = cudaEventDisableTiming;
  bool recorded_ = false;
  cudaEvent_t event_ = nullptr;
};

}  // namespace c10::cuda
