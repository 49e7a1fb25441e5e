// shadow.cpp: the regions of memory that a traced kernel may touch.
#include <algorithm>

#include "trace/traced_block.h"

namespace simt {
namespace trace {

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

void Regions::add(uint64_t start, uint64_t bytes, Space space, uint16_t poison, bool fresh, std::string name,
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

Region* Regions::find(uint64_t address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = map_.upper_bound(address);
  if (it == map_.begin()) return nullptr;
  Region& region = std::prev(it)->second;
  return address < region.end ? &region : nullptr;
}

std::string Regions::describe(uint64_t address) {
  auto bytes = [](uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); };
  uint64_t nearest = 4096;  // farther off, the neighbour has nothing to do with it
  std::string text = " at an address that belongs to no tensor and no allocation";
  auto above = map_.upper_bound(address);
  // The simulator's own memory is nobody's neighbour: where it lies says nothing of the kernel.
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

// ---------------------------------------------------------------------------------------------------------------
// A block's shared memory, with red zones

constexpr size_t kRedZone = 128;  // between shared variables; a multiple of 128 keeps the banks where they were

void TracedBlock::add_shared(size_t offset, size_t bytes, const std::string& name) {
  for (unsigned rank = 0; rank < worker_.cluster_blocks; ++rank) {
    char* const place = worker_.shared_of(rank) + offset;
    const auto start = reinterpret_cast<uint64_t>(place);
    std::fill_n(place, bytes, static_cast<char>(0xff));  // NaN
    session_.regions.add(start, bytes, Space::shared, 0, true, name, rank * kSharedLimit + offset);
    shared_regions_.push_back(start);
  }
}

void* TracedBlock::shared_static(const SharedSite* site, size_t bytes, size_t alignment) {
  for (const auto& [known, offset] : shared_sites_)
    if (known == site) return worker_.shared_of(cluster_rank()) + offset;
  const size_t align = std::max(alignment, size_t{128});
  const size_t offset = (shared_used_ + (shared_used_ ? kRedZone : 0) + align - 1) / align * align;
  shared_declared_ += bytes;
  if (shared_declared_ > kStaticSharedLimit || offset + bytes > kSharedLimit)
    fail("shared-memory", {0},
         "the kernel declares " + std::to_string(shared_declared_) + " bytes of static shared memory (with " +
             std::to_string(job_.config.shared_bytes) + " dynamic); the limit is 49152 static and 232448 in all");
  shared_used_ = offset + bytes;
  shared_sites_.push_back({site, offset});
  add_shared(offset, bytes, "a shared array of " + std::to_string(bytes) + " bytes");
  return worker_.shared_of(cluster_rank()) + offset;
}

}  // namespace trace
}  // namespace simt
