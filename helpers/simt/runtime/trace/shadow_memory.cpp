// shadow_memory.cpp: pages of shadow cells, and the check of a new access against a cell.
#include "trace/shadow_memory.h"

namespace simt::trace {

namespace {

// log2 of the bytes that the cells for an access of this size may stand for.
unsigned cell_shift(uint64_t address, unsigned size) {
  if (size >= 4 && address % 4 == 0) return 2;
  return size == 2 && address % 2 == 0 ? 1 : 0;
}

}  // namespace

void ShadowMemory::begin_cluster(unsigned blocks, unsigned shift) {
  shift_ = shift;
  for (uint64_t number = 0; number <= blocks * kSharedLimit >> kPageShift; ++number) {
    const auto it = pages_.find(number);
    if (it == pages_.end()) continue;
    Page& page = it->second;
    page.cells.clear();
    page.cells.resize((size_t{1} << kPageShift) >> page.shift);
  }
}

ShadowMemory::Page& ShadowMemory::page(uint64_t number, unsigned shift) {
  auto& [recent_number, recent] = recent_[number % kRecent];
  if (!recent || recent_number != number) {
    recent_number = number;
    recent = &pages_[number];
  }
  Page& page = *recent;
  if (page.cells.empty()) {
    page.shift = shift;
    page.cells.resize((size_t{1} << kPageShift) >> shift);
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
  return page;
}

const Race* ShadowMemory::access(const Accessor& accessor, uint64_t address, unsigned size, Kind kind, uint64_t pc) {
  const bool atomic = kind == Kind::atomic;
  Access now;
  now.pc = pc;
  now.cluster = accessor.cluster;
  now.phase = accessor.agent == Agent::tma ? Access::kNoPhase : accessor.phase;
  now.clock = accessor.clock;
  now.slot = static_cast<uint16_t>(accessor.slot);
  now.kind = kind;
  now.agent = accessor.agent;

  bool race = false;
  const auto ordered = [&](const Access& before) { return happens_before(before, accessor, shift_); };
  const auto check = [&](const Access& before) {
    if (race || !before.exists() || (before.kind == Kind::atomic && atomic)) return;
    const bool unfenced = accessor.asynchronous() && before.kind == Kind::store && before.agent == Agent::thread &&
                          before.cluster == accessor.cluster && !accessor.clocks->async.knows(before.epoch());
    const bool unordered = !ordered(before);
    if (!unordered && !unfenced) return;
    found_ = {before, !unordered};
    race = true;
  };

  const unsigned shift = cell_shift(address, size);
  for (const uint64_t end = address + size; address < end;) {
    Page& p = page(address >> kPageShift, shift);
    ShadowCell& cell = p.cells[(address & ((1u << kPageShift) - 1)) >> p.shift];
    address += uint64_t{1} << p.shift;
    check(cell.write);
    if (cell.concurrent) check(cell.concurrent->atomic);
    if (kind == Kind::load) {
      if (!cell.read.exists() || ordered(cell.read))
        cell.read = now;
      else if (now.same_warp(cell.read))
        cell.make_concurrent().read_in_warp = now;
      else
        cell.make_concurrent().read_elsewhere = now;
      continue;
    }
    check(cell.read);
    if (cell.concurrent) {
      check(cell.concurrent->read_in_warp);
      check(cell.concurrent->read_elsewhere);
    }
    if (atomic && cell.write.kind == Kind::atomic && !ordered(cell.write)) cell.make_concurrent().atomic = cell.write;
    cell.write = now;
    if (atomic) continue;
    cell.read.agent = Agent::none;
    cell.concurrent.reset();
  }
  return race ? &found_ : nullptr;
}

}  // namespace simt::trace
