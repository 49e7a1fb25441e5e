// footprint.cpp: counts each sector once.
#include "trace/footprint.h"

namespace simt::trace {

void Footprint::count(uint64_t sector, bool writes) {
  const uint64_t number = sector >> kPageShift;
  if (number != number_) {
    number_ = number;
    page_ = &pages_[number];
  }
  const uint64_t at = sector & ((1u << kPageShift) - 1), bit = uint64_t{1} << at % 64;
  uint64_t &read = page_->read[at / 64], &written = page_->written[at / 64];
  if (writes) {
    info_.sectors_written += !(written & bit);
    written |= bit;
  } else if (!((read | written) & bit)) {
    info_.sectors_read += 1;
    read |= bit;
  }
}

void Footprint::note(const Region& region) {
  last_region_ = region.virtual_start;
  if (regions_.insert(region.virtual_start).second)
    info_.sectors_readable += (region.end - region.start + kSectorBytes - 1) / kSectorBytes;
}

}  // namespace simt::trace
