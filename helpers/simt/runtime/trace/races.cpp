// races.cpp: happens-before. Two accesses to a byte race if one of them is a plain store (or a plain load and an
// atomic update meet) and nothing in the kernel orders them.
//
// Ordered are accesses of one thread; of one block with a __syncthreads between; of one warp with a synchronisation
// between that names both lanes; of a cluster's threads and units with mbarriers, waits and the cluster's barriers
// between, as their clocks say (mbarriers.cpp); and of two blocks if the first one fenced and then updated an atomic
// that the second one updated later, as in 'the last block reduces'. That an atomic acquires needs no fence here: the
// pattern's published form has none on that side.
#include <algorithm>

#include "trace/races.h"

namespace simt {
namespace trace {

void join(Knowledge& into, const Knowledge& from) {
  for (const auto& [block, known] : from) {
    auto [it, added] = into.emplace(block, known);
    if (!added &&
        (it->second.epoch < known.epoch || (it->second.epoch == known.epoch && it->second.clock < known.clock)))
      it->second = known;
  }
}

void Clocks::join(const Clocks& other) {
  if (other.empty()) return;
  if (empty()) return void(*this = other);
  for (size_t i = 0; i < known.size(); ++i) known[i] = std::max(known[i], other.known[i]);
  for (size_t i = 0; i < fenced.size(); ++i) fenced[i] = std::max(fenced[i], other.fenced[i]);
}

void Races::begin_cluster(unsigned blocks, unsigned shift) {
  shift_ = shift;
  for (uint64_t number = 0; number <= blocks * kSharedLimit >> kPageShift; ++number) {
    auto it = pages_.find(number);
    if (it == pages_.end()) continue;
    it->second.cells.clear();
    it->second.cells.resize((size_t{1} << kPageShift) >> it->second.shift);
  }
  for (auto it = locations_.begin(); it != locations_.end();)
    it = it->first < kGlobalStart ? locations_.erase(it) : std::next(it);
}

bool Races::ordered(const Access& before, const Who& who) const {
  if (before.cluster == who.cluster) {
    if (before.by != Access::By::unit && !who.unit) {
      if (before.slot == who.slot) return true;
      if (before.epoch < who.epoch && (before.slot ^ who.slot) >> shift_ == 0) return true;
      if (before.slot / kWarpSize == who.slot / kWarpSize && who.warp->of[before.slot % kWarpSize] >= before.clock)
        return true;
    }
    return !who.clocks->empty() && who.clocks->known[before.slot] >= before.clock;
  }
  for (const Knowledge* knowledge : {who.block_knows, static_cast<const Knowledge*>(who.lane_knows)}) {
    if (knowledge->empty()) continue;
    auto it = knowledge->find(block_of(before.cluster, before.slot));
    if (it == knowledge->end()) continue;
    const Known& known = it->second;
    if (before.epoch < known.epoch) return true;
    if (before.epoch == known.epoch && before.slot == known.slot && before.clock <= known.clock) return true;
  }
  return false;
}

Races::Page& Races::page(uint64_t number, unsigned shift) {
  auto& [recent_number, recent] = recent_[number % kRecent];
  if (!recent || recent_number != number) recent_number = number, recent = &pages_[number];
  Page& page = *recent;
  if (page.cells.empty()) {
    page.shift = shift;
    page.cells.resize((size_t{1} << kPageShift) >> shift);
  } else if (shift < page.shift) {  // a smaller access than any before: each cell becomes several
    std::vector<Cell> finer((size_t{1} << kPageShift) >> shift);
    for (size_t i = 0; i < finer.size(); ++i) {
      const Cell& cell = page.cells[i >> (page.shift - shift)];
      finer[i].write = cell.write, finer[i].read = cell.read;
      if (cell.more) finer[i].more = std::make_unique<More>(*cell.more);
    }
    page.cells = std::move(finer);
    page.shift = shift;
  }
  return page;
}

void Races::acquire_and_release(const Who& who, uint64_t address, bool fenced) {
  Knowledge& released = locations_[address];
  if (!released.empty()) join(*who.lane_knows, released);
  if (!fenced) return;
  join(released, *who.block_knows);
  join(released, *who.lane_knows);
  join(released, {{block_of(who.cluster, who.slot), Known{who.epoch, who.clock, who.slot}}});
}

const Race* Races::access(const Who& who, const Event& event) {
  const bool atomic = event.kind == Kind::atomic;
  Access now;
  now.cluster = who.cluster, now.clock = who.clock, now.pc = event.pc();
  now.slot = static_cast<uint16_t>(who.slot), now.kind = event.kind;
  now.by = who.unit ? Access::By::unit : who.asynchronous ? Access::By::product : Access::By::thread;
  now.epoch = who.unit ? ~0u : who.epoch;  // a barrier of the block says nothing of what a unit does
  if (atomic && !who.unit) acquire_and_release(who, event.address, event.fenced);

  const unsigned shift = event.size >= 4 && event.address % 4 == 0   ? 2
                         : event.size == 2 && event.address % 2 == 0 ? 1
                                                                     : 0;
  bool race = false;
  auto check = [&](const Access& before) {
    if (race || before.by == Access::By::nobody || (before.kind == Kind::atomic && atomic)) return;
    const bool unfenced = who.asynchronous && before.kind == Kind::store && before.by == Access::By::thread &&
                          before.cluster == who.cluster && who.clocks->fenced[before.slot] < before.clock;
    if (ordered(before, who)) {
      if (!unfenced) return;
      found_ = {before, true};
    } else {
      found_ = {before, false};
    }
    race = true;
  };
  for (uint64_t a = event.address, end = a + event.size; a < end;) {
    Page& p = page(a >> kPageShift, shift);
    Cell& cell = p.cells[(a & ((1u << kPageShift) - 1)) >> p.shift];
    a += uint64_t{1} << p.shift;
    check(cell.write);
    if (cell.more) check(cell.more->other_write);
    if (event.kind == Kind::load) {
      if (cell.read.by == Access::By::nobody || ordered(cell.read, who))
        cell.read = now;
      else  // two more readers are enough to find a writer that is ordered after only some of them
        (now.same_warp(cell.read) ? cell.extended().near_read : cell.extended().far_read) = now;
      continue;
    }
    check(cell.read);
    if (cell.more) check(cell.more->near_read), check(cell.more->far_read);
    if (atomic && cell.write.kind == Kind::atomic && !ordered(cell.write, who))
      cell.extended().other_write = cell.write;
    cell.write = now;
    if (!atomic) cell.read.by = Access::By::nobody, cell.more.reset();
  }
  return race ? &found_ : nullptr;
}

}  // namespace trace
}  // namespace simt
