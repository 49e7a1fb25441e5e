// allocations.cpp: placing, mapping and finding allocations.
#include "api/allocations.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace simt {
namespace {

constexpr size_t kAlignment = 256;                        // of every pointer that cudaMalloc returns
constexpr size_t kReserve = size_t{1} << 40;              // addresses to reserve; takes no memory
constexpr size_t kReserveLeast = size_t{1} << 28;         // if addresses are limited (ulimit -v)
constexpr size_t kLarge = size_t{1} << 26;                // from this size on, check first for free memory
constexpr size_t kGranularity = size_t{2} * 1024 * 1024;  // of the capacity, as on a GPU

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

size_t read_limit(const char* path) {  // of a container; 0: none
  unsigned long long value = 0;
  if (std::FILE* file = std::fopen(path, "r")) {
    if (std::fscanf(file, "%llu", &value) != 1) value = 0;  // "max"
    std::fclose(file);
  }
  return static_cast<size_t>(value);
}

size_t half_of_memory(size_t page) {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page;
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const size_t limit = read_limit(path);
    if (limit && limit < bytes) bytes = limit;
  }
  return bytes / 2 / kGranularity * kGranularity;
}

// Bytes that the system says it can provide; without bound where it says nothing.
size_t available_memory() {
  unsigned long long kilobytes = SIZE_MAX / 1024;
  if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
    char line[128];
    while (std::fgets(line, sizeof line, file) && std::sscanf(line, "MemAvailable: %llu", &kilobytes) != 1) {
    }
    std::fclose(file);
  }
  return static_cast<size_t>(kilobytes) * 1024;
}

bool unmap(uintptr_t address, size_t bytes) {  // returns the memory and keeps the addresses
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace

std::string without_access(const Allocation& allocation, int device) {
  if (allocation.kind != MemoryKind::device || may_access(device, allocation.device)) return "";
  const std::string here = std::to_string(device), there = std::to_string(allocation.device);
  return " on device " + there + ", which device " + here + " may not access: call cudaDeviceEnablePeerAccess(" +
         there + ", 0) while device " + here + " is current";
}

Allocations& Allocations::instance() {
  static Allocations* allocations = new Allocations;  // never destroyed: static objects may free memory at exit
  return *allocations;
}

Allocations::Allocations() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), capacity_(half_of_memory(page_)) {
  capacity_ = capacity_ / static_cast<size_t>(device_count()) / kGranularity * kGranularity;
  for (size_t bytes = kReserve; bytes >= kReserveLeast; bytes /= 2) {
    void* range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    next_ = base_ = reinterpret_cast<uintptr_t>(range);
    reserved_ = bytes;
    return;
  }
}

uintptr_t Allocations::place(size_t span) const {
  for (uintptr_t from : {next_, base_}) {  // after the newest allocation, then from the beginning
    uintptr_t candidate = from;
    for (auto it = live_.lower_bound(from); it != live_.end() && it->first - candidate < span; ++it)
      candidate = it->first + it->second.bytes + page_;
    if (candidate - base_ <= reserved_ && reserved_ - (candidate - base_) >= span) return candidate;
  }
  return 0;
}

void* Allocations::allocate(size_t bytes, MemoryKind kind, int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bytes == 0 || bytes > capacity_ - used_[device]) return nullptr;
  if (bytes >= kLarge && bytes > available_memory()) return nullptr;  // the fill below would get the process killed
  const size_t pages = round_up(bytes, page_), span = pages + page_;
  const uintptr_t address = place(span);
  if (address == 0 || mprotect(reinterpret_cast<void*>(address), pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::memset(reinterpret_cast<void*>(address), 0xFF, pages);
  const uintptr_t start = address + pages - round_up(bytes, kAlignment);  // as close to the guard page as possible
  live_[address] = {pages, {start, bytes, kind, device}};
  next_ = address + span;
  used_[device] += pages;
  return reinterpret_cast<void*>(start);
}

bool Allocations::release(const void* start) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = live_.find(reinterpret_cast<uintptr_t>(start) / page_ * page_);
  if (it == live_.end() || it->second.allocation.start != reinterpret_cast<uintptr_t>(start)) return false;
  unmap(it->first, it->second.bytes);
  used_[it->second.allocation.device] -= it->second.bytes;
  live_.erase(it);
  return true;
}

void Allocations::release_all(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = live_.begin(); it != live_.end();) {
    if (it->second.allocation.device != device) {
      ++it;
      continue;
    }
    unmap(it->first, it->second.bytes);
    it = live_.erase(it);
  }
  used_[device] = 0;
}

void Allocations::protect_from(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [address, pages] : live_) {
    const Allocation& a = pages.allocation;
    pages.is_protected = a.kind == MemoryKind::device && !may_access(device, a.device);
    if (pages.is_protected) mprotect(reinterpret_cast<void*>(address), pages.bytes, PROT_NONE);
  }
}

void Allocations::end_protection() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [address, pages] : live_) {
    if (pages.is_protected) mprotect(reinterpret_cast<void*>(address), pages.bytes, PROT_READ | PROT_WRITE);
    pages.is_protected = false;
  }
}

bool Allocations::find(const void* pointer, Allocation& found) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (!in_range(pointer)) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return false;
  const Allocation& candidate = (--it)->second.allocation;
  if (address < candidate.start || address - candidate.start >= candidate.bytes) return false;
  found = candidate;
  return true;
}

bool Allocations::beside(const void* pointer, Allocation& found) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return false;
  const auto& [first, pages] = *--it;
  found = pages.allocation;
  return address < first + pages.bytes + page_;
}

bool Allocations::in_range(const void* pointer) const {
  return reinterpret_cast<uintptr_t>(pointer) - base_ < reserved_;
}

size_t Allocations::used(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return used_[device];
}

std::string Allocations::describe(const void* pointer) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (!in_range(pointer)) return "";
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it != live_.begin()) {
    const auto& [first, pages] = *--it;
    const Allocation& a = pages.allocation;
    const std::string what = " an allocation of " + std::to_string(a.bytes) + " bytes";
    if (address < a.start) return std::to_string(a.start - address) + " bytes before" + what;
    if (address - a.start < a.bytes)
      return "byte " + std::to_string(address - a.start) + " of" + what + without_access(a, current_device());
    if (address < first + pages.bytes + page_)
      return std::to_string(address - a.start - a.bytes) + " bytes past the end of" + what;
  }
  return "in memory that is not allocated (freed, or far outside an allocation)";
}

}  // namespace simt
