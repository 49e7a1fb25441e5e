// uninitialised.h: reads of memory that nothing has written.
//
// Checked in replay order, for fresh memory: shared arrays, and global memory that was allocated under the X-ray. An
// access is at fault if it reads a byte that no traced kernel has written and that still holds the pattern which it was
// filled with. Limits: code that is not traced may have written that very pattern; writes by kernels that are not
// traced (blocks outside the sample among them) are known only by the pattern being gone.
#pragma once

#include "trace/outcome.h"

namespace simt {
namespace trace {

void check_fresh(Outcome& outcome, unsigned i, const Event& event);

// Thread i accesses memory: marks what it writes, and reports what it reads too early.
inline void check_initialised(Outcome& outcome, unsigned i, const Event& event) {
  if (event.region->fresh) check_fresh(outcome, i, event);
}

}  // namespace trace
}  // namespace simt
