// work.cpp: adds up what each thread loads and stores.
#include "trace/work.h"

#include <algorithm>

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
  if (event.form == Form::update) add_updates(request);
  if (!cluster_.session.asks_who_wrote || event.kind == Kind::load) return;
  for (unsigned k = 0; k < request.count; ++k) {
    const unsigned i = first + request.lanes[k];
    const Event& own = *request.events[k];
    const std::pair<std::string, uint64_t> place{own.region->name, own.address - own.region->virtual_start};
    cluster_.session.writers[place] = {info_.kernel, own.size, cluster_.number_of(cluster_.number, cluster_.rank_of(i)),
                                       cluster_.index_of(i)};
  }
}

// Updates of one word by a warp's lanes may reach the L2 cache as one.
void Work::add_updates(const Request& request) {
  uint64_t words[kWarpSize];
  for (unsigned k = 0; k < request.count; ++k) words[k] = request.events[k]->address / 4;
  std::sort(words, words + request.count);
  const uint64_t* const end = std::unique(words, words + request.count);
  for (const uint64_t* word = words; word < end; ++word)
    info_.most_updates = std::max(info_.most_updates, ++updates_[*word]);
}

void Work::end_cluster() {
  const bool first = info_.traced_blocks <= cluster_.worker.cluster_blocks;
  for (unsigned rank = 0; rank < cluster_.worker.cluster_blocks; ++rank) {
    for (unsigned type = 0; type < kTensorTypes; ++type) {
      const uint64_t own = products_[rank][type];
      uint64_t& least = info_.least_products[type];
      info_.products[type] += own;
      least = first && rank == 0 ? own : std::min(least, own);
    }
  }
  for (unsigned i = 0; i < cluster_.count; ++i) {
    info_.loading += loads_[i] > 0;
    info_.storing += stores_[i] > 0;
    info_.most_loads = std::max<uint64_t>(info_.most_loads, loads_[i]);
    info_.most_stores = std::max<uint64_t>(info_.most_stores, stores_[i]);
  }
}

}  // namespace simt::trace
