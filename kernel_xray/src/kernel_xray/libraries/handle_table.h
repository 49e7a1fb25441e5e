// handle_table.h: the handles that a library has given, each with its record.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "simt/lasting.h"

namespace simt::libraries {

// No number is given twice, so a destroyed handle is always recognised.
template <typename Record>
class HandleTable {
 public:
  uintptr_t add(Record record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    records_.emplace(++last_, std::move(record));
    return last_;
  }
  Record* find(uintptr_t handle) {  // null if it is not alive; the record stays where it is
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = records_.find(handle);
    return it == records_.end() ? nullptr : &it->second;
  }
  bool remove(uintptr_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return records_.erase(handle) != 0;
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, Record> records_;
  uintptr_t last_ = 0;
};

}  // namespace simt::libraries
