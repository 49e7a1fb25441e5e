// checks.h: what is checked before an access happens: that the memory exists, and that the address is aligned.
//
// A lane that fails a check ends there, so that the stray access never happens. Reads of memory that nothing has
// written are found later, in replay (races.h), because only the replay knows in which order lanes ran.
#pragma once

#include <string>

#include "trace/regions.h"

namespace simt::trace {

struct Place {  // in the code: a program counter, or a line
  uint64_t pc;
  const char* file = nullptr;
  unsigned line = 0;
};

// The region of an access. Ends the lane with a fault if no region holds the address, if the access reaches past the
// region's end, or if the address is misaligned.
Region* checked_region(Lane& lane, uint64_t address, unsigned size, Kind kind, uint64_t pc);
// The compiler found an index outside its array; `data` is its description of the array (-fsanitize=bounds).
void index_out_of_bounds(const void* data, uint64_t index, const void* site);

// Implemented by the traced block (device_side.cpp).
void stop_lane();  // suspends the lane until its record has been replayed, or until Python was asked
[[noreturn]] void lane_fault(const char* kind, Place place, const std::string& message);

}  // namespace simt::trace
