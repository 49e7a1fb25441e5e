// slots.h: which slots the threads of a cluster and the units that work for them have.
//
// Each block has 2^shift slots: one for each of its threads, then one for the TMA stores of each thread, then one for
// the TMA loads that complete on each mbarrier. Threads and their stores are counted in whole warps, so that a slot
// divided by kWarpSize tells the warp. wgmma has no slots: it reads in the order of its thread (races.h).
#pragma once

#include "threads/block.h"

namespace simt {
namespace trace {

constexpr unsigned kMaxLoaders = 64;  // mbarriers of a block on which TMA loads complete

class Slots {
 public:
  explicit Slots(unsigned block_threads = 1)
      : block_threads_(block_threads), stores_((block_threads + kWarpSize - 1) / kWarpSize * kWarpSize) {
    while (1u << shift_ < 2 * stores_ + kMaxLoaders) ++shift_;
  }

  unsigned shift() const { return shift_; }
  unsigned rank(unsigned slot) const { return slot >> shift_; }  // the block in its cluster
  unsigned thread(unsigned i) const { return (i / block_threads_ << shift_) + i % block_threads_; }
  unsigned store(unsigned i) const { return thread(i) + stores_; }
  unsigned load(unsigned rank, unsigned number) const { return (rank << shift_) + 2 * stores_ + number; }

  bool is_load(unsigned slot) const { return in_block(slot) >= 2 * stores_; }
  unsigned thread_of(unsigned slot) const { return in_block(slot) % stores_; }  // in its block; not of a load

 private:
  unsigned in_block(unsigned slot) const { return slot & ((1u << shift_) - 1); }

  unsigned block_threads_, stores_, shift_ = 0;
};

}  // namespace trace
}  // namespace simt
