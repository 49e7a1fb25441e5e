// metrics.cpp: the hardware's rules for sectors and wavefronts.
//
// Global memory moves in sectors of 32 bytes: a request costs the sectors that its lanes touch. Shared memory has 32
// banks of 4 bytes: a request is served in phases (lanes in halves for 8 bytes, in quarters for 16), and a phase
// takes as many wavefronts as the fullest bank has different words. Two neighbouring phases are one if lanes pair up:
// each lane reads the address of its neighbour, which is the next lane for all of them or the next but one (found on
// an H200). The L1 cache has the same banks: loads and stores of global memory by up to 4 bytes a lane take as many
// passes at least (ncu on an H100: as many for columns of a matrix, more for random addresses).
#include "trace/metrics.h"

#include <algorithm>

namespace simt::trace {

namespace {

constexpr unsigned kBanks = 32, kWordBytes = 4;

unsigned distinct(uint64_t* values, unsigned n) {
  if (!std::is_sorted(values, values + n)) std::sort(values, values + n);  // lanes' addresses usually ascend
  return static_cast<unsigned>(std::unique(values, values + n) - values);
}

// In one pass, if the lanes' addresses ascend, as they usually do; false if they do not.
bool count_ascending(Counts& counts, const Request& request, unsigned size) {
  uint64_t before = 0, next_sector = 0;  // the first sector that has not been counted
  unsigned sectors = 0, different = 0;
  for (unsigned i = 0; i < request.count; ++i) {
    const uint64_t first = request.events[i]->address;
    if (first < before) return false;
    different += i == 0 || first != before;
    const uint64_t end = (first + size - 1) / kSectorBytes + 1;
    const uint64_t begin = std::max(first / kSectorBytes, next_sector);
    if (end > begin) sectors += static_cast<unsigned>(end - begin);
    next_sector = std::max(next_sector, end);
    before = first;
  }
  counts.sectors += sectors;
  counts.ideal_sectors += (different * size + kSectorBytes - 1) / kSectorBytes;
  return true;
}

// How many of these words are in the fullest bank.
unsigned fullest_bank(uint64_t* words, unsigned n) {
  uint8_t per_bank[kBanks] = {};
  unsigned fullest = 0;
  n = distinct(words, n);
  for (unsigned k = 0; k < n; ++k) fullest = std::max<unsigned>(fullest, ++per_bank[words[k] % kBanks]);
  return fullest;
}

unsigned passes(const Request& request) {
  const auto address = [&](unsigned i) { return request.events[i]->address; };
  if (request.events[0]->size > kWordBytes) return 1;
  uint64_t words[kWarpSize], least = address(0), most = least;
  for (unsigned i = 0; i < request.count; ++i) {
    least = std::min(least, address(i)), most = std::max(most, address(i));
    words[i] = address(i) / kWordBytes;
  }
  return most - least < kBanks * kWordBytes ? 1 : fullest_bank(words, request.count);
}

void count_global(Counts& counts, const Request& request) {
  counts.passes += passes(request);
  if (count_ascending(counts, request, request.events[0]->size)) return;
  uint64_t sectors[2 * kWarpSize], bytes[kWarpSize];
  unsigned n = 0;
  const unsigned size = request.events[0]->size;
  for (unsigned i = 0; i < request.count; ++i) {
    const uint64_t first = request.events[i]->address, last = first + size - 1;
    sectors[n++] = first / kSectorBytes;
    if (last / kSectorBytes != first / kSectorBytes) sectors[n++] = last / kSectorBytes;
    bytes[i] = first;
  }
  counts.sectors += distinct(sectors, n);
  const unsigned needed = distinct(bytes, request.count) * size;  // an address that lanes share is needed once
  counts.ideal_sectors += (needed + kSectorBytes - 1) / kSectorBytes;
}

// Whether each active lane of [first, last) has the same address as its neighbour, `flip` lanes away.
bool paired(const Request& request, unsigned first, unsigned last, unsigned flip) {
  uint64_t address[kWarpSize];
  unsigned active = 0;
  for (unsigned i = 0; i < request.count; ++i) {
    address[request.lanes[i]] = request.events[i]->address;
    active |= 1u << request.lanes[i];
  }
  for (unsigned lane = first; lane < last; ++lane)
    if ((active >> lane & 1) && (!(active >> (lane ^ flip) & 1) || address[lane] != address[lane ^ flip])) return false;
  return true;
}

// How many lanes, from `first` on, are served together. Lanes in pairs are served twice as many at a time.
unsigned lanes_of_phase(const Request& request, unsigned first, unsigned size) {
  if (size <= 4) return kWarpSize;
  const unsigned lanes = kWarpSize * kWordBytes / size, twice = first % (2 * lanes) ? 0 : first + 2 * lanes;
  return twice && (paired(request, first, twice, 1) || paired(request, first, twice, 2)) ? 2 * lanes : lanes;
}

void count_shared(Counts& counts, const Request& request) {
  const unsigned size = request.events[0]->size;
  unsigned i = 0;  // lanes ascend
  for (unsigned first = 0, end; first < kWarpSize; first = end) {
    end = first + lanes_of_phase(request, first, size);
    uint64_t words[kWarpSize * 2];
    unsigned n = 0;
    for (; i < request.count && request.lanes[i] < end; ++i) {
      const uint64_t address = request.events[i]->address;
      for (uint64_t word = address / kWordBytes; word <= (address + size - 1) / kWordBytes; ++word) words[n++] = word;
    }
    if (!n) continue;
    counts.wavefronts += fullest_bank(words, n);
    counts.ideal_wavefronts += 1;
  }
}

}  // namespace

// TMA requests a row of a tile in lines of 128 bytes, and zeros separately. Multicast to several blocks, a line takes
// at least 2 sectors, and zeros at least 3 (found on an H200).
uint64_t sectors_of_row(uint64_t address, uint64_t bytes, bool for_several) {
  constexpr uint64_t kLineBytes = 128;
  uint64_t sectors = 0;
  for (uint64_t end = address + bytes, next; address < end; address = next) {
    next = std::min(end, (address / kLineBytes + 1) * kLineBytes);
    sectors += std::max<uint64_t>((next - 1) / kSectorBytes - address / kSectorBytes + 1, for_several ? 2 : 1);
  }
  return sectors;
}
uint64_t sectors_of_zeros(uint64_t bytes, bool for_several) {
  return std::max<uint64_t>((bytes + kSectorBytes - 1) / kSectorBytes, for_several ? 3 : 1);
}

void count(Counts& counts, const Request& request) {
  const Event& event = *request.events[0];
  counts.space = event.region->space;
  counts.requests += 1;
  counts.lanes += request.count;
  if (counts.space == Space::global)
    count_global(counts, request);
  else
    count_shared(counts, request);

  if (counts.picture.size() >= request.count) return;
  counts.size = event.size;
  counts.picture.clear();
  for (unsigned i = 0; i < request.count; ++i) counts.picture.push_back({request.lanes[i], request.events[i]->address});
}

}  // namespace simt::trace
