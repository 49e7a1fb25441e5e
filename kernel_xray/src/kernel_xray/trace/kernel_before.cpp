// kernel_before.cpp: finds the earlier kernel's access to the memory of an event.
#include "trace/kernel_before.h"

#include <utility>

namespace simt::trace {

KernelBefore::KernelBefore(cudaStream_t stream, ShadowMemory&& shadow, const Regions& regions,
                           std::shared_ptr<const KernelBefore> further)
    : stream_(stream), shadow_(std::move(shadow)), spans_(regions.global()), further_(std::move(further)) {}

const Access* KernelBefore::conflict(const Event& event) const {
  const Access* const own = own_conflict(event);
  return own || !further_ ? own : further_->conflict(event);
}

const Access* KernelBefore::own_conflict(const Event& event) const {
  const Region& region = *event.region;
  const uint64_t address = event.address - region.virtual_start + region.start;
  for (const Span& span : spans_) {
    if (address < span.start || span.end <= address) continue;
    const bool other_memory = (span.fresh || region.fresh) && span.virtual_start != region.virtual_start;
    if (other_memory) return nullptr;  // allocated since
    return shadow_.conflict(address - span.start + span.virtual_start, event);
  }
  return nullptr;
}

}  // namespace simt::trace
