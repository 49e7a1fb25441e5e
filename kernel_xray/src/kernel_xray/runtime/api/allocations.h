// allocations.h: the memory that cudaMalloc and its relatives return, and lookups of pointers in it.
//
// All of it is in one reserved range of addresses that nothing else uses. An allocation ends within 255 bytes of an
// unmapped page. Freed memory is unmapped, and its addresses are reused as late as possible. So running off the end and
// using freed memory fault at once, in a kernel and (with a segmentation fault, as with CUDA) in host code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "api/devices.h"

namespace simt {

enum class MemoryKind { device, managed, host };

struct Allocation {
  uintptr_t start;  // 256-byte aligned
  size_t bytes;     // as requested
  MemoryKind kind;
  int device;  // the one that was current when it was made
};

// Why kernels on `device` may not use this memory: " on device 1, which device 0 may not access: ..."; "" if they may.
std::string without_access(const Allocation& allocation, int device);

class Allocations {
 public:
  static Allocations& instance();

  // Filled with 0xFF; null when the device has no room.
  void* allocate(size_t bytes, MemoryKind kind, int device);
  bool release(const void* start);  // false: no allocation starts there
  void release_all(int device);

  bool find(const void* pointer, Allocation& found);    // the allocation that holds this byte
  bool beside(const void* pointer, Allocation& found);  // the one whose pages or guard page hold this byte
  bool in_range(const void* pointer) const;             // in the reserved range, allocated or not
  size_t capacity() const { return capacity_; }         // bytes of a device: all have half of the machine's memory
  size_t used(int device);

  // While a device runs kernels: memory of the devices whose memory it may not access (devices.h).
  void protect_from(int device);
  void end_protection();

  // For a fault's message: "4 bytes past the end of an allocation of 1024 bytes (cudaMalloc)", or "" if unknown.
  std::string describe(const void* pointer);

 private:
  Allocations();
  struct Pages {  // an allocation's pages, without its guard page
    size_t bytes;
    Allocation allocation;
    bool is_protected = false;
  };
  using Map = std::map<uintptr_t, Pages>;
  uintptr_t place(size_t span) const;  // where `span` free bytes begin, or 0

  std::mutex mutex_;
  uintptr_t base_ = 0;
  size_t reserved_ = 0, page_, capacity_, used_[kMostDevices] = {};
  uintptr_t next_ = 0;  // where the search for free addresses begins
  Map live_;            // by address of the first page
};

}  // namespace simt
