// heap.cpp: malloc, free, new and delete of traced code, which the linker directs here: TRACED_LINKING in build/flags.py.
#include "trace/heap.h"

#include <cstdlib>
#include <new>
#include <tuple>

#include "../../include/simt/core.h"
#include "../../include/simt/lasting.h"

namespace simt::trace {

Heap& Heap::instance() { return lasting<Heap>(); }

bool Heap::find(uint64_t address, uint64_t& start, uint64_t& bytes) {
  const std::lock_guard lock(mutex_);
  const auto next = bytes_.upper_bound(address);
  if (next == bytes_.begin()) return false;
  std::tie(start, bytes) = *std::prev(next);
  return address - start < bytes;
}

void* Heap::allocated(void* memory, uint64_t bytes) {
  if (!memory || !in_kernel()) return memory;
  const std::lock_guard lock(mutex_);
  bytes_[reinterpret_cast<uint64_t>(memory)] = bytes;
  return memory;
}

void Heap::release(void* memory, void (*by)(void*)) {
  if (!memory) return;
  const bool later = in_kernel();
  {
    const std::lock_guard lock(mutex_);
    if (later) return released_.push_back({memory, by});
    bytes_.erase(reinterpret_cast<uint64_t>(memory));
  }
  by(memory);
}

void Heap::launch_ends() {
  decltype(released_) released;
  {
    const std::lock_guard lock(mutex_);
    released.swap(released_);
    for (const auto& [memory, by] : released) bytes_.erase(reinterpret_cast<uint64_t>(memory));
  }
  for (const auto& [memory, by] : released) by(memory);
}

namespace {
void destroy(void* memory) { ::operator delete(memory); }
void* allocate(size_t bytes) { return Heap::instance().allocated(::operator new(bytes), bytes); }
}  // namespace

}  // namespace simt::trace

using simt::trace::Heap;

#define HOOK extern "C" SIMT_API
HOOK void* __wrap_malloc(size_t bytes) { return Heap::instance().allocated(std::malloc(bytes), bytes); }
HOOK void __wrap_free(void* memory) { Heap::instance().release(memory, std::free); }
HOOK void* __wrap__Znwm(size_t bytes) { return simt::trace::allocate(bytes); }
HOOK void* __wrap__Znam(size_t bytes) { return simt::trace::allocate(bytes); }
HOOK void __wrap__ZdlPv(void* memory) { Heap::instance().release(memory, simt::trace::destroy); }
HOOK void __wrap__ZdaPv(void* memory) { Heap::instance().release(memory, simt::trace::destroy); }
HOOK void __wrap__ZdlPvm(void* memory, size_t) { Heap::instance().release(memory, simt::trace::destroy); }
HOOK void __wrap__ZdaPvm(void* memory, size_t) { Heap::instance().release(memory, simt::trace::destroy); }
