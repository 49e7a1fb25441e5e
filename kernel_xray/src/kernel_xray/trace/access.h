// access.h: the slots of a cluster, one access as shadow memory remembers it, one accessor with what it knows, and
// happens-before between them.
//
// The model is described in races.h.
#pragma once

#include "trace/lane.h"
#include "trace/vector_clock.h"

namespace simt::trace {

// Each block has 2^shift slots: one for each of its threads, then one for the TMA stores of each thread, then one for
// the TMA loads that complete on each mbarrier, and one for the kernel before (kernel_before.h). Threads and their stores are counted in whole warps, so that a slot
// divided by kWarpSize tells the warp. wgmma has no slots: it reads in the order of its thread (races.h). tcgen05.mma uses the slot of its thread's TMA stores.
constexpr unsigned kMaxLoaders = 63;  // mbarriers of a block on which TMA loads complete

class Slots {
 public:
  explicit Slots(unsigned block_threads = 1)
      : block_threads_(block_threads), stores_((block_threads + kWarpSize - 1) / kWarpSize * kWarpSize) {
    while (1u << shift_ < 2 * stores_ + kMaxLoaders + 1) ++shift_;
  }

  unsigned shift() const { return shift_; }
  unsigned rank(unsigned slot) const { return slot >> shift_; }  // the block in its cluster
  unsigned thread(unsigned i) const { return (i / block_threads_ << shift_) + i % block_threads_; }
  unsigned store(unsigned i) const { return thread(i) + stores_; }
  unsigned load(unsigned rank, unsigned number) const { return (rank << shift_) + 2 * stores_ + number; }
  unsigned before() const { return load(0, kMaxLoaders); }  // of the kernel before

  bool is_load(unsigned slot) const { return in_block(slot) >= 2 * stores_; }
  unsigned thread_of(unsigned slot) const { return in_block(slot) % stores_; }  // in its block; not of a load

 private:
  unsigned in_block(unsigned slot) const { return slot & ((1u << shift_) - 1); }

  unsigned block_threads_, stores_, shift_ = 0;
};

enum class Agent : uint8_t {
  none,
  thread,
  wgmma,    // tensor cores, for a thread: in the thread's order, but through the async proxy
  tma,      // the copy unit: a slot of its own, through the async proxy
  tcgen05,  // tensor cores, beside the thread: likewise
};
inline bool beside(Agent agent) { return agent >= Agent::tma; }  // the threads

struct Access {
  uint64_t origin = 0;                         // its program counter and, of a plain write, a hash of the value
  uint32_t cluster = 0, phase = 0, clock = 0;  // phase: block barriers passed; kNoPhase for TMA
  uint16_t slot = 0;
  uint8_t what = 0;           // its kind, its scope if it is strong, and whether it is a swap or a copy (Event)
  Agent agent = Agent::none;  // none: there was no such access

  static constexpr unsigned kValueBits = 16, kCopy = 0x40, kSwap = 0x80, kScopeShift = 3, kKinds = 1 << kScopeShift;
  static uint64_t origin_of(const Event& event) { return event.pc() << kValueBits | event.value; }
  static uint8_t what_of(const Event& event) {
    const unsigned form = event.form == Form::swap                                 ? kSwap
                          : event.form == Form::copy || event.form == Form::landed ? kCopy
                                                                                   : 0;
    return static_cast<uint8_t>(unsigned(event.kind) | unsigned(event.scope) << kScopeShift | form);
  }
  uint64_t pc() const { return origin >> kValueBits; }
  uint16_t value() const { return static_cast<uint16_t>(origin); }  // 0: not known
  Kind kind() const { return static_cast<Kind>(what % kKinds); }
  Scope scope() const { return static_cast<Scope>((what & ~(kSwap | kCopy)) >> kScopeShift); }
  bool strong() const { return scope() != Scope::none; }
  bool swap() const { return what & kSwap; }
  bool copy() const { return what & kCopy; }

  static constexpr uint32_t kNoPhase = ~0u;  // a barrier of the block does not order what TMA does
  Epoch epoch() const { return {slot, clock}; }
  bool exists() const { return agent != Agent::none; }
  bool same_warp(uint32_t other_cluster, unsigned other_slot) const {
    return cluster == other_cluster && slot / kWarpSize == other_slot / kWarpSize;
  }
};

struct Accessor {  // a thread, or a unit that accesses memory for a thread, and what it knows
  uint32_t cluster, phase, clock, slot;
  const WarpClock* warp;
  const GridClock* block_grid;
  GridClock* thread_grid;
  const ProxyClocks* clocks;  // empty unless the kernel uses more than the barriers of blocks and warps
  Agent agent;
  bool only_barriers;  // what follows from the barriers of blocks and warps is all that any thread knows

  Epoch epoch() const { return {slot, clock}; }
  bool asynchronous() const { return agent != Agent::thread; }
};

// A block's number among all blocks of the grid, cluster by cluster. 2^shift: slots of a block.
inline uint64_t block_of(uint32_t cluster, unsigned slot, unsigned shift) {
  return uint64_t{cluster} * kMaxClusterBlocks + (slot >> shift);
}

// Whether both are atomic, and each one's scope includes the other's thread ("morally strong" in the memory model).
inline bool atomic_for_each_other(const Access& before, const Accessor& now, Scope scope, unsigned shift) {
  scope = std::min(scope, before.scope());
  if (scope == Scope::device || scope == Scope::none) return scope == Scope::device;
  return before.cluster == now.cluster && (scope == Scope::cluster || (before.slot ^ now.slot) >> shift == 0);
}

// Whether an atomic or a barrier of another kind than those of blocks and warps orders `before` before `now`.
bool synchronised(const Access& before, const Accessor& now, unsigned shift);

// Whether `before`, which was recorded earlier, happens before the next access of `now`. A call of it for each access
// would cost a twelfth of a trace, and g++ does not inline it by itself.
__attribute__((always_inline)) inline bool happens_before(const Access& before, const Accessor& now, unsigned shift) {
  if (before.cluster == now.cluster && !beside(before.agent) && !beside(now.agent)) {
    if (before.slot == now.slot) return true;  // program order
    const bool same_block = (before.slot ^ now.slot) >> shift == 0;
    if (same_block && before.phase < now.phase) return true;  // a block barrier lies between
    const bool same_warp = before.slot / kWarpSize == now.slot / kWarpSize;
    if (same_warp && before.clock <= now.warp->of[before.slot % kWarpSize]) return true;
  }
  return !now.only_barriers && synchronised(before, now, shift);
}

}  // namespace simt::trace
