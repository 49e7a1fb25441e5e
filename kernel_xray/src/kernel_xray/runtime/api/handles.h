// handles.h: a table of live handles, with a record for each.
//
// No handle is given twice, so a destroyed handle is always recognised.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "../../include/simt/lasting.h"
#include "api/host_call.h"

namespace simt {

template <typename Record>
class Handles {
 public:
  template <typename Handle>
  void add(Handle* handle, const Record& record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_ += 16;
    records_[last_] = record;
    *handle = reinterpret_cast<Handle>(last_);
  }

  bool has(const void* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return records_.count(reinterpret_cast<uintptr_t>(handle)) != 0;
  }

  // The record, or an empty one for a handle that is not there.
  Record find(const void* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto it = records_.find(reinterpret_cast<uintptr_t>(handle));
    return it == records_.end() ? Record{} : it->second;
  }

  cudaError_t remove(const void* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return records_.erase(reinterpret_cast<uintptr_t>(handle)) ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
  }

  // Calls action(record) with the table locked and returns its error, or cudaErrorInvalidResourceHandle.
  template <typename Action>
  cudaError_t with(const void* handle, Action action) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto it = records_.find(reinterpret_cast<uintptr_t>(handle));
    return it == records_.end() ? failed(cudaErrorInvalidResourceHandle) : action(it->second);
  }

  void clear() {
    remove_if([](const Record&) { return true; });
  }

  template <typename Test>
  void remove_if(Test test) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = records_.begin(); it != records_.end();) it = test(it->second) ? records_.erase(it) : std::next(it);
  }

 private:
  std::mutex mutex_;
  uintptr_t last_ = 0x10000;
  std::unordered_map<uintptr_t, Record> records_;
};

// Every stream that a kernel creates: its kernels' launches are in order anyway (threads/children.h).
inline const cudaStream_t kStreamInKernel = reinterpret_cast<cudaStream_t>(0x5);

unsigned stream_flags(cudaStream_t stream);  // 0 for the default streams
int stream_device(cudaStream_t stream);      // of a default stream: the current one
void forget_streams(int device);             // cudaDeviceReset
void forget_events(int device);

}  // namespace simt
