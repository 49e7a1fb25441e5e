// unrolled.h: the requests of a loop that the compiler has unrolled.
//
// nvcc 13 unrolls a loop by U = 2, 4 or 16. A lane with n iterations first makes n % U (for U = 16: n % 4) single ones,
// then steps of U, and after those of 16 one of 8 and one of 4 as far as they fit (seen in machine code for sm_90,
// 2026-11-23). Where some lanes of a warp have more iterations than others, a request of the source then becomes two:
// of 8 and 7 iterations, by U = 4, three single ones of the latter, a step of all lanes, and another step of the former.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "trace/access.h"

namespace simt::trace {

// A request of one program counter. The masks of a loop's iterations only lose lanes.
struct Iteration {
  unsigned mask;
  std::array<uint64_t, kWarpSize> address;  // by lane
};

// Calls count(request) for each request of the loop unrolled by `factor`.
template <typename Count>
void unrolled(const std::vector<Iteration>& loop, unsigned factor, const Count& count) {
  unsigned left[kWarpSize] = {}, done[kWarpSize] = {};
  for (const Iteration& iteration : loop)
    for (unsigned lane = 0; lane < kWarpSize; ++lane) left[lane] += iteration.mask >> lane & 1;

  auto step = [&](unsigned mask, unsigned iterations) {
    for (; mask && iterations > 0; --iterations) {
      Iteration request{mask, {}};
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        if (!(mask >> lane & 1)) continue;
        request.address[lane] = loop[done[lane]++].address[lane];
        --left[lane];
      }
      count(request);
    }
    return mask;
  };
  auto lanes_with = [&](unsigned iterations) {
    unsigned mask = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) mask |= unsigned{left[lane] >= iterations} << lane;
    return mask;
  };

  const unsigned least = std::min(factor, 4u);
  for (unsigned k = 1; k < least; ++k) {
    unsigned mask = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) mask |= unsigned{left[lane] % least != 0} << lane;
    step(mask, 1);
  }
  while (step(lanes_with(factor), factor)) {
  }
  for (unsigned n = factor / 2; n >= least; n /= 2) step(lanes_with(n), n);
}

}  // namespace simt::trace
