// races.h: who accessed a byte last, and what is ordered before what.
//
// The threads of a cluster, and the units that work for them, have slots: 2^shift for each block, the threads first.
#pragma once

#include "trace/trace.h"

namespace simt {
namespace trace {

struct Clock {  // one lane's knowledge of the other lanes of its warp
  uint32_t of[kWarpSize];
};

// What one thread knows of the others of its cluster: their accesses up to these clocks, by slot. Empty: nothing but what
// barriers of the block and the warp say.
struct Clocks {
  std::vector<uint32_t> known;
  std::vector<uint32_t> fenced;  // of that, what a fence has made known to units
  bool empty() const { return known.empty(); }
  void join(const Clocks& other);
};

struct Access {
  uint64_t pc = 0;
  uint32_t cluster = 0, epoch = 0, clock = 0;  // epoch: barriers passed; clock: synchronisations passed
  uint16_t slot = 0;
  Kind kind = Kind::load;
  enum class By : uint8_t { nobody, thread, product, unit } by = By::nobody;  // product: by a thread, with tensor cores

  bool same_warp(const Access& other) const {
    return cluster == other.cluster && slot / kWarpSize == other.slot / kWarpSize;
  }
};

// What is known of other clusters' blocks: all accesses of epochs before `epoch`, and those of the thread in `slot` up to
// `clock` in it.
struct Known {
  uint32_t epoch, clock, slot;
};
using Knowledge = std::unordered_map<uint64_t, Known>;  // by block
void join(Knowledge& into, const Knowledge& from);

struct Who {  // the lane that accesses, or the unit that does for a lane, and what it knows
  uint32_t cluster, epoch, clock, slot;
  const Clock* warp;  // of the lane: what it knows of its warp
  const Knowledge* block_knows;
  Knowledge* lane_knows;
  const Clocks* clocks;
  bool unit, asynchronous;  // a unit is told apart from the thread; not so with products, which are asynchronous too
};

struct Race {
  Access before;
  bool unfenced;  // the two are ordered, but for a fence that a unit needs
};

class Races {
 public:
  // Of so many blocks, with 2^shift slots each: shared memory is that of others no longer.
  void begin_cluster(unsigned blocks, unsigned shift);
  // Records the access; returns the earlier access that it races with, or null.
  const Race* access(const Who& who, const Event& event);

 private:
  struct More {          // what one access of each sort does not tell
    Access near_read;    // by another lane of `read`'s warp
    Access far_read;     // by another warp than `read`'s
    Access other_write;  // an atomic update by another thread than `write`'s
  };
  struct Cell {
    Access write, read;
    std::unique_ptr<More> more;
    More& extended() {
      if (!more) more = std::make_unique<More>();
      return *more;
    }
  };
  struct Page {
    unsigned shift = 2;  // a cell stands for 2^shift bytes
    std::vector<Cell> cells;
  };
  static constexpr unsigned kPageShift = 10, kRecent = 16;
  Page& page(uint64_t number, unsigned shift);
  uint64_t block_of(uint32_t cluster, unsigned slot) const {
    return uint64_t{cluster} * kMaxClusterBlocks + (slot >> shift_);
  }
  bool ordered(const Access& before, const Who& who) const;
  void acquire_and_release(const Who& who, uint64_t address, bool fenced);

  std::unordered_map<uint64_t, Page> pages_;
  std::pair<uint64_t, Page*> recent_[kRecent] = {};
  std::unordered_map<uint64_t, Knowledge> locations_;  // what atomics on an address have released
  unsigned shift_ = 0;
  Race found_;
};

}  // namespace trace
}  // namespace simt
