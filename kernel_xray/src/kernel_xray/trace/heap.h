// heap.h: memory that kernels allocate, with malloc and new.
//
// Until the launch ends in which a kernel frees it, it stays: nothing gets its address, and a use of it is not found.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace simt::trace {

class Heap {
 public:
  static Heap& instance();

  bool find(uint64_t address, uint64_t& start, uint64_t& bytes);  // the memory that holds this byte
  void* allocated(void* memory, uint64_t bytes);                  // notes it if a kernel allocates it
  void release(void* memory, void (*by)(void*));                  // now, or when the launch ends that asks for it
  void launch_ends();

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> bytes_;  // by start
  std::vector<std::pair<void*, void (*)(void*)>> released_;
};

}  // namespace simt::trace
