// units.cpp: what TMA and wgmma access for the running thread, and what tiles cost.
#include "trace/units.h"

#include <algorithm>

namespace simt::trace {

void Units::begin_cluster() {
  if (clocks_.expanded()) std::fill(issued_.begin(), issued_.end(), Issued{});
}

void Units::add_piece(Piece piece) {
  clocks_.expand();
  issued().pieces.push_back(piece);
}

void Units::add_zeros(size_t bytes) { issued().zeros.push_back(bytes); }

void Units::access(const Accessor& accessor, const Piece& piece, uint64_t pc) {
  const unsigned i = cluster_.running();
  const Kind kind = piece.write ? Kind::store : Kind::load;
  Event event{};
  event.kind = kind;
  event.region = cluster_.session.regions.recent(pc);
  unsigned size = 16;
  for (uint64_t at = piece.address, end = at + piece.bytes; at < end; at += size) {
    while (size > end - at) size /= 2;
    event.key = Event::make_key(0, pc, kind, size);
    event.size = static_cast<uint8_t>(size);
    if (!event.region || at < event.region->start || at + size > event.region->end)
      event.region = checked_region(cluster_.lane(i), at, size, kind, pc);
    Region& region = *event.region;
    event.address = at - region.start + region.virtual_start;
    if (region.space == Space::other) continue;
    if (!cluster_.unwatched) races_.check(accessor, i, event);
  }
}

// All tiles that one place in the source loads or stores are one line of the report.
void Units::count_tile(Kind kind, Copy copy) {
  Issued& own = issued();
  Counts& counts = cluster_.session.counts[{cluster_.kernel, cluster_.pc(cluster_.running()), kind}];
  if (copy != Copy::further) {
    const bool for_several = copy == Copy::first;
    uint64_t bytes = 0;
    own.sectors = 0;
    for (const Piece& piece : own.pieces) {
      const Region* region = cluster_.session.regions.find(piece.address);
      if (!region || region->space != Space::global) continue;
      const uint64_t address = piece.address - region->start + region->virtual_start;
      own.sectors += sectors_of_row(address, piece.bytes, for_several);
      if (kind == Kind::tile_load)
        footprint_.reads(*region, address, piece.bytes);
      else
        footprint_.writes(address, piece.bytes);
      bytes += piece.bytes;
    }
    for (const uint64_t zeros : own.zeros) own.sectors += sectors_of_zeros(zeros, for_several);
    counts.space = Space::global;
    counts.requests += 1;
    counts.lanes += 1;
    counts.sectors += own.sectors;
    counts.ideal_sectors += (bytes + kSectorBytes - 1) / kSectorBytes;
    counts.size = std::max(counts.size, static_cast<uint32_t>(bytes));
    if (kind == Kind::tile_load) ++own.tiles;
  }
  if (cluster_.filmed && copy != Copy::further) film_tile(kind);
  if (kind == Kind::tile_load) counts.received += own.sectors;
  own.pieces.clear();
  own.zeros.clear();
}

void Units::film_tile(Kind kind) {
  const unsigned i = cluster_.running();
  Frame frame = cluster_.frame_of(i, Frame::What::tile, cluster_.pc(i), 1u << i % kWarpSize);
  frame.kind = kind;
  frame.space = Space::global;
  frame.sectors = issued().sectors;
  for (const Piece& piece : issued().pieces) frame.size += static_cast<uint32_t>(piece.bytes);
  cluster_.session.film.add(std::move(frame));
}

// ---------------------------------------------------------------------------------------------------------------
// Operations

void Units::deliver(void* barrier, int bytes, bool sent) {
  const unsigned i = cluster_.running();
  const ProxyClocks known = clocks_.full(i);
  const Epoch epoch = mbarriers_.begin_load(barrier, sent);
  const Accessor loader = clocks_.tma(i, epoch, known);
  for (const Piece& piece : issued().pieces) access(loader, piece, cluster_.pc(i));
  mbarriers_.complete_load(barrier, epoch, loader, bytes, sent);
}

void Units::load(void* barrier, int bytes, Copy copy) {
  deliver(barrier, bytes, false);
  if (copy == Copy::sent) {  // ncu counts it so
    count_tile(Kind::tile_store, Copy::own);
  } else {
    count_tile(Kind::tile_load, copy);
  }
}

void Units::send(void* barrier, int bytes) {
  deliver(barrier, bytes, true);
  issued().pieces.clear();
}

void Units::store() {
  const unsigned i = cluster_.running();
  const ProxyClocks known = clocks_.full(i);
  Issued& own = issued();
  own.store_pc = cluster_.pc(i);
  own.last_store = ++own.store_clock;
  for (const Piece& piece : own.pieces) {
    const uint32_t clock = piece.write ? kNever : own.store_clock;
    access(clocks_.tma(i, {clocks_.slots().store(i), clock}, known), piece, own.store_pc);
  }
  count_tile(Kind::tile_store, Copy::own);
  clocks_.tick(i);
}

void Units::product() {
  const unsigned i = cluster_.running();
  const ProxyClocks known = clocks_.full(i);
  const Accessor reader = clocks_.wgmma(i, known);
  Issued& own = issued();
  if (!own.registers_fenced)
    if (Finding* found = cluster_.place("race", cluster_.pc(i), 0, i))
      found->message =
          "the warp's first wgmma.mma_async comes without a wgmma.fence before it: nothing orders what its threads "
          "have "
          "written to registers";
  for (const Piece& piece : own.pieces) {
    access(reader, piece, cluster_.pc(i));
    const bool noted = !own.reads.empty() && own.reads.back().group == own.groups;
    if (!cluster_.session.only_sample || !noted) own.reads.push_back({piece, cluster_.pc(i), own.groups});
  }
  own.pieces.clear();
}

Epoch Units::multiply(const ProxyClocks& known) {
  const unsigned i = cluster_.running();
  Issued& own = issued();
  own.multiply_pc = cluster_.pc(i);
  own.multiplied = ++own.store_clock;
  const Epoch epoch{clocks_.slots().store(i), own.multiplied};
  const Accessor reader = clocks_.tma(i, epoch, known, Agent::tcgen05);
  for (const Piece& piece : own.pieces) access(reader, piece, own.multiply_pc);
  own.pieces.clear();
  clocks_.tick(i);
  return epoch;
}

void Units::commit_products(void* barrier) {
  const unsigned i = cluster_.running();
  Issued& own = issued();
  own.committed = own.multiplied;
  mbarriers_.arrive(barrier, 0, {clocks_.slots().store(i), own.committed});
}

void Units::commit(Unit unit) {
  Issued& own = issued();
  if (unit == Unit::store)
    own.stores.push_back(own.store_clock);
  else
    ++own.groups;
}

void Units::wait(Unit unit, unsigned pending) {
  if (unit == Unit::store)
    wait_for_stores(pending);
  else
    wait_for_products(pending);
}

void Units::wait_for_stores(unsigned pending) {
  const unsigned i = cluster_.running();
  Issued& own = issued();
  if (own.stores.size() <= pending) return;
  own.read_done = std::max(own.read_done, own.stores[own.stores.size() - pending - 1]);
  clocks_.acquire(i, {clocks_.slots().store(i), own.read_done});
}

void Units::wait_for_products(unsigned pending) {
  const unsigned i = cluster_.running();
  Issued& own = issued();
  if (own.reads.empty()) return;
  const ProxyClocks known = clocks_.full(i);
  const Accessor reader = clocks_.wgmma(i, known);
  const auto done = [&](const Read& read) { return read.group + pending < own.groups; };
  for (const Read& read : own.reads)
    if (done(read)) access(reader, read.piece, read.pc);
  own.reads.erase(std::remove_if(own.reads.begin(), own.reads.end(), done), own.reads.end());
}

void Units::fence_registers() { issued().registers_fenced = true; }

void Units::fence() { clocks_.fence(cluster_.running()); }

void Units::check_exit(unsigned i) {
  const Issued& own = issued_[i];
  if (cluster_.failed) return;
  if (!own.reads.empty())
    if (Finding* found = cluster_.place("race", own.reads.front().pc, 0, i))
      found->message =
          "the thread ends while a product may still read shared memory: it has to commit the product and wait for it "
          "(wgmma.commit_group, wgmma.wait_group)";
  if (own.committed != own.multiplied)
    if (Finding* found = cluster_.place("race", own.multiply_pc, 0, i))
      found->message =
          "the thread ends while a tcgen05.mma may still be at work: it has to commit it to an mbarrier for which a "
          "thread waits (tcgen05.commit)";
  if (own.read_done >= own.last_store) return;
  if (Finding* found = cluster_.place("race", own.store_pc, 0, i))
    found->message =
        "the thread ends while a store of a tile may still read shared memory: it has to commit the store and wait for "
        "it (cp.async.bulk.commit_group, cp.async.bulk.wait_group)";
}

}  // namespace simt::trace
