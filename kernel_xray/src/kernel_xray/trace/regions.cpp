// regions.cpp: the regions of memory that a traced kernel may touch.
#include "trace/regions.h"

#include <algorithm>
#include <cstring>

namespace simt::trace {

uint16_t Region::written_before(uint64_t offset, unsigned size, bool mark) {
  uint16_t before = 0;
  for (unsigned done = 0; done < size;) {  // one or two words
    const uint64_t bit = (offset + done) % 64;
    const unsigned n = std::min<unsigned>(size - done, static_cast<unsigned>(64 - bit));
    const uint64_t mask = (uint64_t{1} << n) - 1;
    uint64_t& word = written[(offset + done) / 64];
    before |= static_cast<uint16_t>((word >> bit & mask) << done);
    if (mark) word |= mask << bit;
    done += n;
  }
  return before;
}

void Region::note_other_writes() {
  constexpr uint64_t kGranule = sizeof poison, kPerWord = 64 / kGranule;
  constexpr uint64_t kWhole = 0xff, kLeastTail = 4;  // a shorter tail could equal the poison by chance
  if (!poison) return;
  const uint64_t bytes = end - start;
  bool changed = bytes < 2;  // the granule before the tail
  for (uint64_t offset = 0; offset < bytes; offset += kGranule) {
    uint64_t& word = written[offset / 64];
    if (word == ~uint64_t{0} && offset % 64 == 0 && bytes - offset >= 64) {  // all of its granules are marked
      offset += (kPerWord - 1) * kGranule;
      changed = true;
      continue;
    }
    const uint64_t size = std::min(kGranule, bytes - offset), shift = offset % 64;
    const auto known = static_cast<uint8_t>(word >> shift);  // written by kernels, or marked before
    uint64_t now = poison;
    std::memcpy(&now, reinterpret_cast<const void*>(start + offset), size);
    uint64_t difference = now ^ poison;
    for (unsigned i = 0; i < size; ++i)
      if (known >> i & 1) difference &= ~(kWhole << 8 * i);
    changed = difference != 0 || (changed && size < kLeastTail);
    if (changed) word |= kWhole << shift;
  }
}

void Regions::add(uint64_t start, uint64_t bytes, Space space, uint64_t poison, bool fresh, std::string name,
                  uint64_t into) {
  constexpr uint64_t kAlignment = 512, kGap = 512;
  const std::lock_guard<std::mutex> lock(mutex_);
  Region region{start, start + bytes, into, space, fresh, poison, std::move(name), {}};
  if (space != Space::shared) {
    region.virtual_start = next_virtual_ + into % kAlignment;
    next_virtual_ += (into % kAlignment + bytes + kGap + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (fresh) region.written.assign((bytes + 63) / 64, 0);
  map_.insert_or_assign(start, std::move(region));
  std::fill_n(recent_, kRecent, nullptr);
}

void Regions::remove(uint64_t start) {
  const std::lock_guard<std::mutex> lock(mutex_);
  map_.erase(start);
  std::fill_n(recent_, kRecent, nullptr);
}

void Regions::remove_ordinary() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = map_.begin(); it != map_.end();)
    it = it->second.space == Space::global && !it->second.fresh ? map_.erase(it) : std::next(it);
  std::fill_n(recent_, kRecent, nullptr);
}

void Regions::note_other_writes() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [start, region] : map_) region.note_other_writes();
}

Region* Regions::find(uint64_t address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = map_.upper_bound(address);
  if (it == map_.begin()) return nullptr;
  Region& region = std::prev(it)->second;
  return address < region.end ? &region : nullptr;
}

std::vector<Span> Regions::global() const {
  std::vector<Span> spans;
  for (const auto& [start, region] : map_)
    if (region.space == Space::global) spans.push_back({start, region.end, region.virtual_start, region.fresh});
  return spans;
}

std::string Regions::describe(uint64_t address) {
  auto bytes = [](uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); };
  uint64_t nearest = 4096;  // a region farther away is not named
  std::string text = " at an address that belongs to no tensor and no allocation";
  auto above = map_.upper_bound(address);
  // Skip the simulator's own memory when naming a neighbour.
  if (above != map_.end() && above->second.space != Space::other && above->second.start - address < nearest) {
    nearest = above->second.start - address;
    text = ", " + bytes(nearest) + " before the start of " + above->second.name;
  }
  if (above != map_.begin()) {
    const Region& below = std::prev(above)->second;
    const uint64_t past = address - below.end;
    if (below.space != Space::other && past < nearest)
      text = (past ? ", " + bytes(past) + " past" : std::string(" just past")) + " the end of " + below.name;
  }
  return text;
}

}  // namespace simt::trace
