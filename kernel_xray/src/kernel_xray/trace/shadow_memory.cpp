// shadow_memory.cpp: pages of shadow cells, and the check of a new access against a cell.
#include "trace/shadow_memory.h"

#include <cstring>
#include <mutex>

#include "trace/regions.h"

namespace simt::trace {

namespace {

// log2 of the bytes that the cells for an access of this size may stand for.
unsigned cell_shift(uint64_t address, unsigned size) {
  if (size >= 4 && address % 4 == 0) return 2;
  return size == 2 && address % 2 == 0 ? 1 : 0;
}

using Cells = std::vector<ShadowCell>;

// Cells of earlier launches, for the next ones: memory that the allocator returned to the system after each launch
// would be faulted in again, page by page, which took a tenth of the time of a trace.
class SpareCells {
 public:
  Cells take(size_t count) {
    Cells cells;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!spare_.empty()) {
        cells = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    cells.resize(count);
    for (ShadowCell& cell : cells) cell = {};  // here, where they are about to be used, in one pass
    return cells;
  }
  void give(Cells&& cells) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.size() < kMost) spare_.push_back(std::move(cells));
  }

 private:
  static constexpr size_t kMost = 4096;  // pages of 1 KiB: some 70 MB of cells of 4 bytes
  std::mutex mutex_;
  std::vector<Cells> spare_;
};

SpareCells& spare_cells() {
  static auto* spare = new SpareCells;  // never destroyed: a trace may end after static objects do
  return *spare;
}

}  // namespace

ShadowMemory::~ShadowMemory() {
  for (auto& [number, page] : pages_) spare_cells().give(std::move(page.cells));
}

bool synchronised(const Access& before, const Accessor& now, unsigned shift) {
  const uint64_t block = block_of(before.cluster, before.slot, shift);
  const auto released = [&](const GridClock& grid) {  // through atomics
    return grid.knows(block, before.phase, before.epoch(), before.strong());
  };
  const bool same_cluster = before.cluster == now.cluster;
  const bool unit = beside(before.agent) || beside(now.agent);
  if ((!same_cluster || !unit) && (released(*now.block_grid) || released(*now.thread_grid))) return true;
  return same_cluster && now.clocks->generic.knows(before.epoch());
}

void ShadowMemory::begin_cluster(unsigned shift) {
  shift_ = shift;
  for (Page* page : shared_)
    for (ShadowCell& cell : page->cells) cell = {};
}

// The page with cells for accesses of this size: most often one of the pages that were used last.
inline ShadowMemory::Page& ShadowMemory::page(uint64_t number, unsigned shift) {
  const auto& [recent_number, recent] = recent_[number % kRecent];
  return recent && recent_number == number && shift >= recent->shift ? *recent : prepared_page(number, shift);
}

ShadowMemory::Page& ShadowMemory::prepared_page(uint64_t number, unsigned shift) {
  Page& page = pages_[number];
  if (page.cells.empty()) {
    if (number < kGlobalStart >> kPageShift) shared_.push_back(&page);
    page.shift = shift;
    page.cells = spare_cells().take((size_t{1} << kPageShift) >> shift);
  } else if (shift < page.shift) {  // a smaller access than any before: split each cell
    std::vector<ShadowCell> finer((size_t{1} << kPageShift) >> shift);
    for (size_t i = 0; i < finer.size(); ++i) {
      const ShadowCell& cell = page.cells[i >> (page.shift - shift)];
      finer[i].write = cell.write;
      finer[i].read = cell.read;
      if (cell.concurrent) finer[i].make_concurrent() = *cell.concurrent;
    }
    page.cells = std::move(finer);
    page.shift = shift;
  }
  recent_[number % kRecent] = {number, &page};
  return page;
}

template <typename Visit>
void ShadowMemory::cells(const Event& event, Visit visit) {
  const unsigned shift = cell_shift(event.address, event.size);
  for (uint64_t at = event.address, end = at + event.size; at < end;) {
    Page& p = page(at >> kPageShift, shift);
    visit(p.cells[(at & ((1u << kPageShift) - 1)) >> p.shift]);
    at += uint64_t{1} << p.shift;
  }
}

const Race* ShadowMemory::access(const Accessor& accessor, const Event& event) {
  const uint64_t origin = Access::origin_of(event);
  const uint8_t what = Access::what_of(event);
  const uint32_t phase = beside(accessor.agent) ? Access::kNoPhase : accessor.phase;
  const bool load = event.kind == Kind::load, strong = event.strong();
  const uint64_t when = accessor.cluster | uint64_t{phase} << 32;
  const uint64_t who =
      accessor.clock | uint64_t{accessor.slot} << 32 | uint64_t{what} << 48 | uint64_t(accessor.agent) << 56;
  const auto put = [&](Access& place) {  // in words: a copy of a structure that was just assembled stalls the processor
    std::memcpy(&place.origin, &origin, sizeof origin);
    std::memcpy(&place.cluster, &when, sizeof when);
    std::memcpy(&place.clock, &who, sizeof who);
  };

  bool race = false;
  const auto ordered = [&](const Access& before) { return happens_before(before, accessor, shift_); };
  const auto check = [&](const Access& before) __attribute__((always_inline)) {
    if (!before.exists() || (strong && atomic_for_each_other(before, accessor, event.scope, shift_))) return;
    const bool unordered = !ordered(before);
    if (!unordered && !accessor.asynchronous()) return;
    const bool unfenced = accessor.asynchronous() && before.kind() == Kind::store && before.agent == Agent::thread &&
                          before.cluster == accessor.cluster && !accessor.clocks->async.knows(before.epoch());
    if ((!unordered && !unfenced) || (race && !found_.harmless())) return;
    const bool plain_writes = before.kind() == Kind::store && event.kind == Kind::store && !before.strong() && !strong;
    found_ = {before, !unordered, plain_writes && event.value && event.value == before.value(),
              unfenced && !unordered && before.copy() && accessor.agent == Agent::wgmma, before.strong() && strong};
    race = true;
  };

  cells(event, [&](ShadowCell& cell) {
    check(cell.write);
    if (cell.concurrent) check(cell.concurrent->strong);
    if (load) {
      if (!cell.read.exists() || ordered(cell.read))
        put(cell.read);
      else if (cell.read.same_warp(accessor.cluster, accessor.slot))
        put(cell.make_concurrent().read_in_warp);
      else
        put(cell.make_concurrent().read_elsewhere);
      return;
    }
    check(cell.read);
    if (cell.concurrent) {
      check(cell.concurrent->read_in_warp);
      check(cell.concurrent->read_elsewhere);
    }
    if (strong && cell.write.strong() && !ordered(cell.write)) cell.make_concurrent().strong = cell.write;
    put(cell.write);
    if (strong) return;
    cell.read.agent = Agent::none;
    cell.concurrent.reset();
  });
  return race ? &found_ : nullptr;
}

const Access* ShadowMemory::conflict(uint64_t address, const Event& event) const {
  for (uint64_t at = address; at < address + event.size; ++at) {
    const auto found = pages_.find(at >> kPageShift);
    if (found == pages_.end()) continue;
    const Page& page = found->second;
    const ShadowCell& cell = page.cells[(at & ((1u << kPageShift) - 1)) >> page.shift];
    const Access& before = cell.write.exists() || event.kind == Kind::load ? cell.write : cell.read;
    if (before.exists() && !(before.strong() && event.strong())) return &before;
  }
  return nullptr;
}

void ShadowMemory::validate(const Accessor& accessor, const Event& swap) {
  const auto scope = static_cast<uint8_t>(unsigned(swap.scope) << Access::kScopeShift);
  const auto mark = [&](Access& read) {
    if (read.exists() && read.cluster == accessor.cluster && read.slot == accessor.slot) read.what |= scope;
  };
  cells(swap, [&](ShadowCell& cell) {
    mark(cell.read);
    if (!cell.concurrent) return;
    mark(cell.concurrent->read_in_warp);
    mark(cell.concurrent->read_elsewhere);
  });
}

}  // namespace simt::trace
