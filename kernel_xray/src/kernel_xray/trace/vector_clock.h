// vector_clock.h: epochs and vector clocks, as in FastTrack, and two compressed forms of a vector clock.
//
// A slot is what FastTrack calls a thread: something whose own accesses are in order. Slot s counts its synchronisation
// operations in a clock. The epoch s@c stands for all accesses that s made while its clock was c. A vector clock V
// holds a clock for each slot of a cluster; V knows s@c (the paper's c <= V(s)) if those accesses happen before its
// owner's next one. Joining takes the maximum of each slot.
//
// Not in the paper: an empty VectorClock is the least one and takes no memory; WarpClock and GridClock below.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "threads/block.h"

namespace simt::trace {

struct Epoch {  // slot@clock
  uint32_t slot, clock;
};

class VectorClock {
 public:
  VectorClock() = default;
  explicit VectorClock(size_t slots) : clocks_(slots) {}

  bool empty() const { return clocks_.empty(); }
  size_t slots() const { return clocks_.size(); }
  bool knows(Epoch epoch) const { return !empty() && epoch.clock <= clocks_[epoch.slot]; }
  void raise(Epoch epoch) { clocks_[epoch.slot] = std::max(clocks_[epoch.slot], epoch.clock); }

  void join(const VectorClock& other) {
    if (other.empty()) return;
    if (empty()) clocks_.resize(other.clocks_.size());
    for (size_t s = 0; s < clocks_.size(); ++s) clocks_[s] = std::max(clocks_[s], other.clocks_[s]);
  }
  // Synchronisation through an object with a release clock of its own: release, then acquire, orders what came before
  // the one before what comes after the other.
  void acquire(const VectorClock& released) { join(released); }
  void release(VectorClock& into) const { into.join(*this); }

 private:
  std::vector<uint32_t> clocks_;
};

// A vector clock for each of the two proxies through which a GPU accesses shared memory (PTX ISA, "Proxies"). TMA and
// wgmma use the async proxy: they see a thread's earlier writes only after a proxy fence.
struct ProxyClocks {
  VectorClock generic;  // everything that happens before
  VectorClock async;    // the part of it that a proxy fence has made visible to units; never ahead of `generic`

  bool empty() const { return generic.empty(); }
  void acquire(const ProxyClocks& released) {
    generic.acquire(released.generic);
    async.acquire(released.async);
  }
  void release(ProxyClocks& into) const { into.acquire(*this); }
  void fence() { async.join(generic); }
};

// The components of a vector clock for the lanes of the owner's warp.
struct WarpClock {
  uint32_t of[kWarpSize];

  void join(const WarpClock& other) {
    for (unsigned k = 0; k < kWarpSize; ++k) of[k] = std::max(of[k], other.of[k]);
  }
};

// A sparse vector clock over the blocks of the grid. A component is a barrier phase of a block (accesses in earlier
// phases are known, whichever thread made them) and the epochs that are known within that phase. Strong accesses are
// known by epochs of their own, in any phase: a release covers the plain accesses before its fence, and itself.
class GridClock {
 public:
  bool empty() const { return blocks_.empty(); }
  void clear() { blocks_.clear(); }
  bool knows(uint64_t block, uint32_t phase, Epoch epoch, bool strong) const {
    if (empty()) return false;
    const auto it = blocks_.find(block);
    if (it == blocks_.end()) return false;
    const Component& known = it->second;
    return phase < known.phase || (phase == known.phase && known.plain.knows(epoch)) ||
           (strong && known.strong.knows(epoch));
  }
  void raise(uint64_t block, uint32_t phase, Epoch epoch) { blocks_[block].at(phase).plain.raise(epoch); }
  void raise_strong(uint64_t block, Epoch epoch) { blocks_[block].strong.raise(epoch); }
  void join(const GridClock& other) {
    for (const auto& [block, theirs] : other.blocks_) {
      Component& ours = blocks_[block].at(theirs.phase);
      if (ours.phase == theirs.phase) ours.plain.join(theirs.plain);
      ours.strong.join(theirs.strong);
    }
  }

 private:
  class Epochs {  // by slot
   public:
    bool knows(Epoch epoch) const {
      const auto it = std::lower_bound(all_.begin(), all_.end(), epoch.slot, before);
      return it != all_.end() && it->slot == epoch.slot && epoch.clock <= it->clock;
    }
    void raise(Epoch epoch) {
      const auto it = std::lower_bound(all_.begin(), all_.end(), epoch.slot, before);
      if (it == all_.end() || it->slot != epoch.slot)
        all_.insert(it, epoch);
      else
        it->clock = std::max(it->clock, epoch.clock);
    }
    void join(const Epochs& other) {
      for (const Epoch epoch : other.all_) raise(epoch);
    }
    void clear() { all_.clear(); }

   private:
    static bool before(Epoch epoch, uint32_t slot) { return epoch.slot < slot; }
    std::vector<Epoch> all_;
  };
  struct Component {
    uint32_t phase = 0;
    Epochs plain, strong;

    Component& at(uint32_t new_phase) {  // earlier phases are known as a whole
      if (new_phase > phase) {
        phase = new_phase;
        plain.clear();
      }
      return *this;
    }
  };
  std::unordered_map<uint64_t, Component> blocks_;
};

}  // namespace simt::trace
