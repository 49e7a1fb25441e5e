// work.cpp: adds up what each thread loads and stores.
#include "trace/work.h"

namespace simt::trace {

void Work::add(unsigned first, const Request& request) {
  const Event& event = *request.events[0];
  if (event.region->space != Space::global) return;
  uint32_t* const accesses = (event.kind == Kind::load ? loads_ : stores_).data() + first;
  if (request.count == kWarpSize)  // the usual case, in vector instructions
    for (unsigned k = 0; k < kWarpSize; ++k) ++accesses[k];
  else
    for (unsigned k = 0; k < request.count; ++k) ++accesses[request.lanes[k]];
  for (unsigned k = 0; k < request.count; ++k) {
    const Event& own = *request.events[k];
    if (event.kind != Kind::store) footprint.reads(*own.region, own.address, own.size);
    if (event.kind != Kind::load) footprint.writes(own.address, own.size);
  }
  if (!cluster_.session.asks_who_wrote || event.kind == Kind::load) return;
  for (unsigned k = 0; k < request.count; ++k) {
    const unsigned i = first + request.lanes[k];
    const Event& own = *request.events[k];
    const std::pair<std::string, uint64_t> place{own.region->name, own.address - own.region->virtual_start};
    cluster_.session.writers[place] = {info_.kernel, own.size, cluster_.number_of(cluster_.number, cluster_.rank_of(i)),
                                       cluster_.index_of(i)};
  }
}

void Work::end_cluster() {
  for (unsigned i = 0; i < cluster_.count; ++i) {
    info_.loading += loads_[i] > 0;
    info_.storing += stores_[i] > 0;
    info_.most_loads = std::max<uint64_t>(info_.most_loads, loads_[i]);
    info_.most_stores = std::max<uint64_t>(info_.most_stores, stores_[i]);
  }
}

}  // namespace simt::trace
