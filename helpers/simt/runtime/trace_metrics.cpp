// trace_metrics.cpp: what one request of a warp costs, by the rules of the hardware.
//
// Global memory moves in sectors of 32 bytes: a request costs as many as its lanes touch. Shared memory has 32 banks
// of 4 bytes: a request is served in phases (lanes in halves for 8 bytes, in quarters for 16), and a phase takes as
// many wavefronts as the fullest bank has different words.
#include <algorithm>

#include "trace.h"

namespace simt {
namespace trace {

namespace {

constexpr unsigned kSectorBytes = 32, kBanks = 32, kWordBytes = 4;

unsigned distinct(uint64_t* values, unsigned n) {
  std::sort(values, values + n);
  return static_cast<unsigned>(std::unique(values, values + n) - values);
}

void count_global(Counts& counts, const Request& request) {
  uint64_t sectors[2 * kWarpSize], bytes[kWarpSize];
  unsigned n = 0;
  const unsigned size = request.events[0]->size;
  for (unsigned i = 0; i < request.count; ++i) {
    const uint64_t first = request.events[i]->address;
    sectors[n++] = first / kSectorBytes;
    sectors[n++] = (first + size - 1) / kSectorBytes;
    bytes[i] = first;
  }
  counts.sectors += distinct(sectors, n);
  const unsigned needed = distinct(bytes, request.count) * size;  // lanes that share an address need it once
  counts.ideal_sectors += (needed + kSectorBytes - 1) / kSectorBytes;
}

void count_shared(Counts& counts, const Request& request) {
  const unsigned size = request.events[0]->size;
  const unsigned phases = size <= 4 ? 1 : size / 4, lanes_per_phase = kWarpSize / phases;
  for (unsigned phase = 0; phase < phases; ++phase) {
    uint64_t words[kWarpSize * 4];
    unsigned n = 0, per_bank[kBanks] = {}, fullest = 0;
    for (unsigned i = 0; i < request.count; ++i) {
      if (request.lanes[i] / lanes_per_phase != phase) continue;
      const uint64_t first = request.events[i]->address;
      for (uint64_t word = first / kWordBytes; word <= (first + size - 1) / kWordBytes; ++word) words[n++] = word;
    }
    n = distinct(words, n);
    for (unsigned i = 0; i < n; ++i) fullest = std::max(fullest, ++per_bank[words[i] % kBanks]);
    counts.wavefronts += fullest;
    counts.ideal_wavefronts += n ? 1 : 0;
  }
}

}  // namespace

void count(Session& session, const std::string& kernel, const Request& request) {
  const Event& event = *request.events[0];
  Counts& counts = session.counts[{kernel, event.pc, event.kind}];
  counts.space = event.region->space;
  counts.requests += 1;
  counts.lanes += request.count;
  if (counts.space == Space::global)
    count_global(counts, request);
  else
    count_shared(counts, request);

  Picture& picture = session.pictures[{kernel, event.pc}];
  if (picture.lanes.size() >= request.count) return;
  picture.size = event.size;
  picture.lanes.clear();
  for (unsigned i = 0; i < request.count; ++i) picture.lanes.push_back({request.lanes[i], request.events[i]->address});
}

}  // namespace trace
}  // namespace simt
