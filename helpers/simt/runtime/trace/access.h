// access.h: one access as shadow memory remembers it, one accessor with what it knows, and happens-before between them.
//
// The model is described in races.h.
#pragma once

#include "trace/lane.h"
#include "trace/vector_clock.h"

namespace simt {
namespace trace {

enum class Agent : uint8_t {
  none,
  thread,
  wgmma,  // tensor cores, for a thread: in the thread's order, but through the async proxy
  tma,    // the copy unit: a slot of its own, through the async proxy
};

struct Access {
  uint64_t pc = 0;
  uint32_t cluster = 0, phase = 0, clock = 0;  // phase: block barriers passed; kNoPhase for TMA
  uint16_t slot = 0;
  Kind kind = Kind::load;
  Agent agent = Agent::none;  // none: there was no such access

  static constexpr uint32_t kNoPhase = ~0u;  // a barrier of the block does not order what TMA does
  Epoch epoch() const { return {slot, clock}; }
  bool exists() const { return agent != Agent::none; }
  bool same_warp(const Access& other) const {
    return cluster == other.cluster && slot / kWarpSize == other.slot / kWarpSize;
  }
};

struct Accessor {  // a thread, or a unit that accesses memory for a thread, and what it knows
  uint32_t cluster, phase, clock, slot;
  const WarpClock* warp;
  const GridClock* block_grid;
  GridClock* thread_grid;
  const ProxyClocks* clocks;  // empty unless the kernel uses more than the barriers of blocks and warps
  Agent agent;

  Epoch epoch() const { return {slot, clock}; }
  bool asynchronous() const { return agent != Agent::thread; }
};

// A block's number among all blocks of the grid, cluster by cluster. 2^shift: slots of a block.
inline uint64_t block_of(uint32_t cluster, unsigned slot, unsigned shift) {
  return uint64_t{cluster} * kMaxClusterBlocks + (slot >> shift);
}

// Whether `before`, which was recorded earlier, happens before the next access of `now`.
inline bool happens_before(const Access& before, const Accessor& now, unsigned shift) {
  if (before.cluster != now.cluster) {
    const uint64_t block = block_of(before.cluster, before.slot, shift);
    return now.block_grid->knows(block, before.phase, before.epoch()) ||
           now.thread_grid->knows(block, before.phase, before.epoch());
  }
  if (before.agent != Agent::tma && now.agent != Agent::tma) {
    if (before.slot == now.slot) return true;  // program order
    const bool same_block = (before.slot ^ now.slot) >> shift == 0;
    if (same_block && before.phase < now.phase) return true;  // a block barrier lies between
    const bool same_warp = before.slot / kWarpSize == now.slot / kWarpSize;
    if (same_warp && before.clock <= now.warp->of[before.slot % kWarpSize]) return true;
  }
  return now.clocks->generic.knows(before.epoch());
}

}  // namespace trace
}  // namespace simt
