// metrics.h: what one request of a warp, or one row of a tile, costs in sectors and wavefronts.
//
// The rules are those of the hardware as documented by NVIDIA or measured on an H200 (metrics.cpp). Limits: caches are
// not modelled; only what a request asks for is counted.
#pragma once

#include "trace/session.h"

namespace simt::trace {

constexpr unsigned kSectorBytes = 32;

struct Request {  // one access by several lanes of a warp in the same step: events with the same key
  const Event* events[kWarpSize];
  unsigned lanes[kWarpSize];  // ascending
  unsigned count = 0;
};
void count(Counts& counts, const Request& request);

// Sectors that TMA requests for one row of a tile: for its bytes in memory, and for zeros in place of elements outside
// the matrix. `for_several`: the load is multicast to several blocks.
uint64_t sectors_of_row(uint64_t address, uint64_t bytes, bool for_several);
uint64_t sectors_of_zeros(uint64_t bytes, bool for_several);

}  // namespace simt::trace
