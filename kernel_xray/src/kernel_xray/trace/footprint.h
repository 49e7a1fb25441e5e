// footprint.h: which sectors of global memory a launch has touched: what DRAM must deliver and take at least once.
//
// A sector that is read before the launch writes it has to come from DRAM if no cache holds it when the launch begins.
// A sector that is written stays in the L2 cache, or goes to DRAM. Only traced blocks count.
#pragma once

#include <array>
#include <unordered_map>

#include "trace/metrics.h"

namespace simt::trace {

class Footprint {
 public:
  explicit Footprint(LaunchInfo& info) : info_(info) {}
  // An access to [address, address + bytes), virtual addresses.
  void reads(const Region& region, uint64_t address, uint64_t bytes) {
    if (region.virtual_start != last_region_) note(region);
    touch(address, bytes, false);
  }
  void writes(uint64_t address, uint64_t bytes) { touch(address, bytes, true); }

 private:
  static constexpr unsigned kPageShift = 12;  // sectors of a page: 128 KiB of memory
  using Bits = std::array<uint64_t, (1u << kPageShift) / 64>;
  struct Page {
    Bits read{}, written{};
  };
  void touch(uint64_t address, uint64_t bytes, bool writes) {
    const uint64_t end = (address + bytes - 1) / kSectorBytes;
    for (uint64_t sector = address / kSectorBytes; sector <= end; ++sector)
      if (sector != last_[writes]) count(last_[writes] = sector, writes);
  }
  void count(uint64_t sector, bool writes);
  void note(const Region& region);

  LaunchInfo& info_;
  std::unordered_map<uint64_t, Page> pages_;
  uint64_t last_[2] = {~uint64_t{0}, ~uint64_t{0}};  // the sector of the last read, and of the last write
  uint64_t number_ = ~uint64_t{0};                   // of a page
  Page* page_ = nullptr;                             // that page
  std::set<uint64_t> regions_;                       // by virtual start
  uint64_t last_region_ = ~uint64_t{0};
};

}  // namespace simt::trace
