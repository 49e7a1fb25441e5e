// trace_races.cpp: happens-before. Two accesses to a byte race if one of them is a plain store (or a plain load and an
// atomic update meet) and nothing in the kernel orders them.
//
// Ordered are accesses of one thread; of one block with a __syncthreads between; of one warp with a synchronisation
// between that names both lanes; and of two blocks if the first one fenced and then updated an atomic that the second
// one updated later, as in 'the last block reduces'. That an atomic acquires needs no fence here: the pattern's
// published form has none on that side.
#include <algorithm>

#include "trace.h"

namespace simt {
namespace trace {

void join(Knowledge& into, const Knowledge& from) {
  for (const auto& [block, known] : from) {
    auto [it, added] = into.emplace(block, known);
    if (!added && (it->second.epoch < known.epoch || (it->second.epoch == known.epoch && it->second.clock < known.clock)))
      it->second = known;
  }
}

bool Races::ordered(const Access& before, const Who& who) {
  if (before.block == who.block) {
    if (before.thread == who.thread || before.epoch < who.epoch) return true;
    return before.thread / kWarpSize == who.thread / kWarpSize &&
           who.warp->of[before.thread % kWarpSize] >= before.clock;
  }
  for (const Knowledge* knowledge : {who.block_knows, static_cast<const Knowledge*>(who.lane_knows)}) {
    auto it = knowledge->find(before.block);
    if (it == knowledge->end()) continue;
    const Known& known = it->second;
    if (before.epoch < known.epoch) return true;
    if (before.epoch == known.epoch && before.thread == known.thread && before.clock <= known.clock) return true;
  }
  return false;
}

Races::Page& Races::page(uint64_t number, unsigned shift) {
  Page& page = pages_[number];
  if (page.cells.empty()) {
    page.shift = shift;
    page.cells.resize((size_t{1} << kPageShift) >> shift);
  } else if (shift < page.shift) {  // a smaller access than any before: each cell becomes several
    std::vector<Cell> finer((size_t{1} << kPageShift) >> shift);
    for (size_t i = 0; i < finer.size(); ++i) finer[i] = page.cells[i >> (page.shift - shift)];
    page.cells = std::move(finer);
    page.shift = shift;
  }
  return page;
}

const Access* Races::access(const Who& who, const Event& event) {
  const bool atomic = event.kind == Kind::atomic, writes = event.kind != Kind::load;
  Access now;
  now.block = who.block, now.epoch = who.epoch, now.clock = who.clock, now.pc = event.pc;
  now.thread = static_cast<uint16_t>(who.thread), now.atomic = atomic, now.valid = true;
  // Shared memory of different blocks has the same addresses; it is a different place.
  const uint64_t base = event.region->space == Space::shared ? (uint64_t{who.block} + 1) << 40 : 0;

  if (atomic) {
    Knowledge& released = locations_[base + event.address];
    join(*who.lane_knows, released);
    if (event.fenced) {
      join(released, *who.block_knows);
      join(released, *who.lane_knows);
      join(released, {{who.block, Known{who.epoch, who.clock, who.thread}}});
    }
  }

  const unsigned shift = event.size >= 4 && event.address % 4 == 0 ? 2 : event.size == 2 && event.address % 2 == 0 ? 1 : 0;
  bool race = false;
  for (uint64_t a = base + event.address, end = a + event.size; a < end;) {
    Page& p = page(a >> kPageShift, shift);
    Cell& cell = p.cells[(a & ((1u << kPageShift) - 1)) >> p.shift];
    a += uint64_t{1} << p.shift;
    auto conflicts = [&](const Access& before) {
      return before.valid && !(before.atomic && atomic) && !ordered(before, who);
    };
    if (!race && conflicts(cell.write)) found_ = cell.write, race = true;
    if (writes) {
      if (!race && conflicts(cell.read)) found_ = cell.read, race = true;
      if (!race && conflicts(cell.other_read)) found_ = cell.other_read, race = true;
      cell.write = now;
      if (!atomic) cell.read.valid = cell.other_read.valid = false;
    } else if (!cell.read.valid || cell.read.thread == now.thread || ordered(cell.read, who)) {
      cell.read = now;
    } else {
      cell.other_read = now;  // two of the readers are enough to find a writer that is ordered after only one
    }
  }
  return race ? &found_ : nullptr;
}

}  // namespace trace
}  // namespace simt
