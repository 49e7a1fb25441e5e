// device_copies.cpp: keeps and exchanges the devices' values of variables.
#include "api/device_copies.h"

#include <cstring>

#include "../../include/simt/lasting.h"
#include "api/devices.h"

namespace simt {

DeviceCopies& DeviceCopies::instance() { return lasting<DeviceCopies>(); }

DeviceCopies::Map::iterator DeviceCopies::holding(uintptr_t address) {
  const auto after = variables_.upper_bound(address);
  if (after == variables_.begin()) return variables_.end();
  const auto it = std::prev(after);
  return address - it->first < it->second.bytes ? it : variables_.end();
}

void DeviceCopies::add(const volatile void* start, size_t bytes, bool shared) {
  // While a library is loaded nothing may be thrown; a wrong number of devices is reported by the first call.
  if (!wrong_device_count().empty() || device_count() == 1) return;
  const auto* first = const_cast<const char*>(static_cast<const volatile char*>(start));
  const auto address = reinterpret_cast<uintptr_t>(first);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (holding(address) != variables_.end()) return;
  Variable& added = variables_[address];
  added.bytes = bytes;
  if (!shared) added.values.assign(static_cast<size_t>(device_count()), {first, first + bytes});
}

void DeviceCopies::remove(const volatile void* start) {
  const std::lock_guard<std::mutex> lock(mutex_);
  variables_.erase(reinterpret_cast<uintptr_t>(start));
}

bool DeviceCopies::has(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = holding(reinterpret_cast<uintptr_t>(address));
  return it != variables_.end() && !it->second.values.empty();
}

void DeviceCopies::load(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (device == loaded_) return;
  for (auto& [start, variable] : variables_) {
    if (variable.values.empty()) continue;
    auto* place = reinterpret_cast<char*>(start);
    std::memcpy(variable.values[static_cast<size_t>(loaded_)].data(), place, variable.bytes);
    std::memcpy(place, variable.values[static_cast<size_t>(device)].data(), variable.bytes);
  }
  loaded_ = device;
}

}  // namespace simt
