// uninitialised.cpp: which bytes of fresh memory kernels have written.
#include "trace/uninitialised.h"

namespace simt {
namespace trace {

void check_fresh(Outcome& outcome, unsigned i, const Event& event) {
  Region& region = *event.region;
  const uint64_t offset = event.address - region.virtual_start;
  const uint16_t written = region.written_before(offset, event.size, event.kind != Kind::load);
  if (!(event.poison & ~written)) return;
  if (Finding* found = outcome.place("uninitialised-read", event.pc(), 0, i))
    found->message = (event.kind == Kind::load ? "reads " : "atomically updates ") + std::to_string(event.size) +
                     (event.size == 1 ? " byte" : " bytes") + " of " + region.name + ", " + std::to_string(offset) +
                     " bytes into it, which nothing has written";
}

}  // namespace trace
}  // namespace simt
