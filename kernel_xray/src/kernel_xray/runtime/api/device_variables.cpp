// device_variables.cpp: registers and finds variables.
#include "api/device_variables.h"

#include <algorithm>

#include "../../include/simt/core.h"
#include "../../include/simt/lasting.h"
#include "api/device_copies.h"

namespace simt {

DeviceVariables& DeviceVariables::instance() { return lasting<DeviceVariables>(); }

void DeviceVariables::add(const Span& span) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++entries_.try_emplace(span.start, Entry{span, 0}).first->second.count;
}

void DeviceVariables::remove(uint64_t start) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = entries_.find(start);
  if (it != entries_.end() && --it->second.count == 0) entries_.erase(it);
}

bool DeviceVariables::find(uint64_t address, Span& found) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = entries_.upper_bound(address);
  if (it == entries_.begin()) return false;
  const Span& span = std::prev(it)->second.span;
  if (address - span.start >= span.bytes) return false;
  found = span;
  return true;
}

std::pair<uint64_t, uint64_t> DeviceVariables::gap(uint64_t address, uint64_t page) {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t start = address / page * page, end = start + page;
  const auto next = entries_.upper_bound(address);
  if (next != entries_.end()) end = std::min(end, next->first);
  if (next != entries_.begin()) {
    const Span& before = std::prev(next)->second.span;
    start = std::max(start, before.start + before.bytes);
  }
  return {start, end};
}

DeviceVariable::DeviceVariable(const char* name, const volatile void* start, size_t bytes, bool shared)
    : start_(reinterpret_cast<uint64_t>(start)) {
  DeviceVariables::instance().add({start_, bytes, name});
  DeviceCopies::instance().add(start, bytes, shared);
}
DeviceVariable::~DeviceVariable() {
  DeviceVariables::instance().remove(start_);
  DeviceCopies::instance().remove(reinterpret_cast<const void*>(start_));
}

}  // namespace simt
