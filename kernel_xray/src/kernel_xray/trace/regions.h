// regions.h: what an address belongs to: a tensor, an allocation, a shared array, or the simulator itself.
//
// Each region has virtual addresses, as a GPU's allocator would have assigned them, so that sectors and banks do not
// depend on where this process happens to keep the bytes. Virtual addresses below kGlobalStart are shared memory, one
// arena for each block of a cluster. A region of fresh memory also tracks which of its bytes have been written: by
// traced kernels byte by byte, by other code in whole granules of 8 bytes, which are compared with the poison that the
// memory was filled with before each launch (and after its blocks that are not traced). So what the host has written
// counts as written even if bytes of it equal the poison.
// Limits: an access that strays into another region is taken for an access to that region. Where other code has written
// a part of a granule, all of it counts as written; tensors of 1 byte do.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "trace/lane.h"

namespace simt::trace {

enum class Space : uint8_t { global, shared, other };  // other: parameters and constants, which are not counted

constexpr const char* kArguments = "the launch's arguments";  // the name of their region

struct Region {
  uint64_t start, end;     // [start, end)
  uint64_t virtual_start;  // in shared memory: the offset
  Space space;
  bool fresh;       // reading it before writing is a fault
  uint64_t poison;  // the granule that fresh memory was filled with if code that is not traced may write to it too;
                    // 0: every write is seen
  std::string name;
  std::vector<uint64_t> written;  // a bit for each byte, if fresh

  // Which of the bytes at `offset` kernels have written, as a mask. `mark`: marks them as written.
  uint16_t written_before(uint64_t offset, unsigned size, bool mark);
  void note_other_writes();  // marks the granules that no longer hold the poison
};

struct Span {  // where a region was
  uint64_t start, end, virtual_start;
  bool fresh;
};

constexpr uint64_t kGlobalStart = 1 << 22;
static_assert(kMaxClusterBlocks * kSharedLimit < kGlobalStart, "global memory begins behind all shared memory");

class Regions {
 public:
  // `into`: bytes between the start of the allocation, which is 512-byte aligned, and that of the region: not 0 for a
  // view.
  void add(uint64_t start, uint64_t bytes, Space space, uint64_t poison, bool fresh, std::string name, uint64_t into);
  void remove(uint64_t start);
  void remove_ordinary();                  // all global memory that is not fresh
  void note_other_writes();                // to fresh memory, by code that is not traced
  Region* find(uint64_t address);          // the region that holds the address, or null
  std::string describe(uint64_t address);  // where an address outside all regions lies
  std::vector<Span> global() const;        // the regions of global memory

  // The region of the last access at this PC, and probably of the next one.
  Region*& recent(uint64_t pc) { return recent_[pc * 0x9e3779b97f4a7c15u >> (64 - kRecentBits)]; }

 private:
  static constexpr unsigned kRecentBits = 8, kRecent = 1 << kRecentBits;
  std::mutex mutex_;                // other threads may make and free tensors while no kernel runs
  std::map<uint64_t, Region> map_;  // by start
  Region* recent_[kRecent] = {};
  uint64_t next_virtual_ = kGlobalStart;
};

}  // namespace simt::trace
