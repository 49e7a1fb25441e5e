// work.cpp: adds up what each thread loads and stores.
#include "trace/work.h"

namespace simt::trace {

void Work::add(unsigned first, const Request& request) {
  const Event& event = *request.events[0];
  if (event.region->space != Space::global) return;
  for (unsigned k = 0; k < request.count; ++k) {
    const unsigned i = first + request.lanes[k];
    Share& share = of_threads_[i];
    ++(event.kind == Kind::load ? share.loads : share.stores);
    if (!cluster_.session.asks_who_wrote || event.kind == Kind::load) continue;
    const Event& own = *request.events[k];
    const std::pair<std::string, uint64_t> place{own.region->name, own.address - own.region->virtual_start};
    cluster_.session.writers[place] = {info_.kernel, own.size, cluster_.number_of(cluster_.number, cluster_.rank_of(i)),
                                       cluster_.index_of(i)};
  }
}

void Work::end_cluster() {
  for (unsigned i = 0; i < cluster_.count; ++i) {
    const Share& share = of_threads_[i];
    info_.loading += share.loads > 0;
    info_.storing += share.stores > 0;
    info_.most_loads = std::max(info_.most_loads, share.loads);
    info_.most_stores = std::max(info_.most_stores, share.stores);
  }
}

}  // namespace simt::trace
