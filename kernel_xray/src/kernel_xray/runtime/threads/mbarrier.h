// mbarrier.h: the state of an mbarrier, which both modes keep in the barrier's own 64 bits.
#pragma once

#include <cstdint>

namespace simt {

struct MBarrier {
  int32_t bytes;                         // expected and not yet arrived
  uint32_t pending : 11, arrivals : 11;  // arrivals still missing in this phase; arrivals per phase
  uint32_t phase : 10;

  bool passed(unsigned parity) const { return phase % 2 != parity; }  // the phase of this parity is complete
};
static_assert(sizeof(MBarrier) == 8, "an mbarrier has 64 bits");

constexpr unsigned kMaxArrivals = 1024;
constexpr char kNoParity[] = "a wait names a phase by its parity, which is 0 or 1: the number of the phase % 2";
constexpr char kTooManyArrivals[] = "more threads arrive at an mbarrier than it was initialised for";

// Counts arrivals and expected bytes. Returns false if more arrive than this phase allows.
bool count(MBarrier& barrier, unsigned arrivals, int bytes);

}  // namespace simt
