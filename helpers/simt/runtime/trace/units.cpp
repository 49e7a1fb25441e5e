// units.cpp: units that read and write for a traced block's threads, and may be late.
//
// A unit loads tiles for each mbarrier, one stores tiles for each thread. A load's clock goes to its mbarrier; a store's,
// to the thread that waits for it, and only for what it reads: no wait that there is here tells when its writes are done.
// A product is its thread's own: it reads when it is asked for and, since it may be late, again when it is waited for.
//
// Units do not see what a thread has written before a fence has made it known to them; clocks are kept for that too.
#include <algorithm>

#include "trace/traced_block.h"

namespace simt {
namespace trace {

// ---------------------------------------------------------------------------------------------------------------
// Accesses

// Thread i, as what it asks tensor cores to read, now or late.
Who TracedBlock::asynchronous(unsigned i, const Clocks& clocks) {
  Who reader = who(i);
  reader.clocks = &clocks, reader.asynchronous = true;
  return reader;
}

Who TracedBlock::unit(unsigned slot, uint32_t clock, const Clocks& clocks) {
  Who unit = asynchronous(me(), clocks);
  unit.slot = slot, unit.clock = clock, unit.unit = true;
  return unit;
}

void TracedBlock::touch(const Who& who, unsigned i, const Piece& piece, uint64_t pc) {
  constexpr unsigned kSize = 16;
  const Kind kind = piece.write ? Kind::store : Kind::load;
  Event event{};
  event.key = Event::make_key(0, pc, kind, kSize);
  event.size = kSize, event.kind = kind;
  for (uint64_t at = piece.address; at < piece.address + piece.bytes; at += kSize) {
    if (!event.region || at < event.region->start || at + kSize > event.region->end)
      event.region = checked_region(lanes_[i % kWarpSize], at, kSize, kind, pc);
    Region& region = *event.region;
    event.address = at - region.start + region.virtual_start;
    event.poison = piece.write || !region.fresh ? 0 : poisoned(region, at, kSize);
    if (region.space == Space::other) continue;
    check_written(i, event);
    check_race(who, i, event);
  }
}

// One line of the report for all tiles that one place in the source asks for.
void TracedBlock::count_tile(Kind kind, Copy copy) {
  Asked& asked = apart_[me()].asked;
  Counts& counts = session_.counts[{kernel_, pc_of(known_[me()].site), kind}];
  if (copy != Copy::further) {
    const bool for_several = copy == Copy::first;
    uint64_t bytes = 0;
    asked.sectors = 0;
    for (const Piece& piece : asked.pieces) {
      const Region* region = session_.regions.find(piece.address);
      if (!region || region->space != Space::global) continue;
      asked.sectors += sectors_of_row(piece.address - region->start + region->virtual_start, piece.bytes, for_several);
      bytes += piece.bytes;
    }
    for (uint64_t zeros : asked.zeros) asked.sectors += sectors_of_zeros(zeros, for_several);
    counts.space = Space::global;
    counts.requests += 1, counts.lanes += 1;
    counts.sectors += asked.sectors;
    counts.ideal_sectors += (bytes + kSectorBytes - 1) / kSectorBytes;
    counts.size = std::max(counts.size, static_cast<uint32_t>(bytes));
  }
  if (kind == Kind::tile_load) counts.received += asked.sectors;
  asked.pieces.clear(), asked.zeros.clear();
}

// ---------------------------------------------------------------------------------------------------------------
// Units

void TracedBlock::async_load(void* barrier, int bytes, Copy copy) {
  const unsigned i = me();
  const Clocks all = everything(i);
  BarrierKnowledge& known = barriers_[barrier];
  if (!known.unit_slot) {
    const unsigned rank =
        static_cast<unsigned>((static_cast<char*>(barrier) - worker_.shared) / kSharedLimit) % worker_.cluster_blocks;
    if (units_[rank] == kMaxBarriers)
      fail("unsupported", {pc_of(known_[i].site)},
           "not supported by the simulator: loads for more than 64 mbarriers in traced mode");
    known.unit_slot = (rank << slot_shift_) + 2 * unit_slots_ + units_[rank]++;
  }
  known.asked_by = i % block_threads_;
  const Who loader = unit(known.unit_slot, ++known.unit_clock, all);
  for (const Piece& piece : apart_[i].asked.pieces) touch(loader, i, piece, pc_of(known_[i].site));
  touch_barrier(loader, barrier, Kind::atomic);
  if (all.known[known.init_slot] >= known.init_clock && all.fenced[known.init_slot] < known.init_clock)
    if (Finding* found = place("race", pc_of(known_[i].site), 0, i))
      found->message = "a load of a tile counts on an mbarrier that no fence has made known to units (fence_init)";
  count_tile(Kind::tile_load, copy);
  Clocks arrived{std::vector<uint32_t>(all.known.size()), std::vector<uint32_t>(all.known.size())};
  arrived.known[known.unit_slot] = known.unit_clock;
  known.arriving.join(arrived);
  ++known_[i].clock;
  advance(*static_cast<MBarrier*>(barrier), 0, -bytes);
}

void TracedBlock::async_store() {
  const unsigned i = me();
  const Clocks all = everything(i);
  Asked& asked = apart_[i].asked;
  asked.store_pc = pc_of(known_[i].site);
  Who storer = unit(slot_of(i) + unit_slots_, ++asked.store_clock, all);
  for (const Piece& piece : apart_[i].asked.pieces) {
    storer.clock = piece.write ? ~0u : asked.store_clock;  // nobody learns when a write is done
    touch(storer, i, piece, asked.store_pc);
  }
  count_tile(Kind::tile_store, Copy::own);
  ++known_[i].clock;
}

void TracedBlock::async_product() {
  const unsigned i = me();
  const Clocks all = everything(i);
  const Who reader = asynchronous(i, all);
  const uint64_t pc = pc_of(known_[i].site);
  for (const Piece& piece : apart_[i].asked.pieces) {
    touch(reader, i, piece, pc);
    apart_[i].asked.reads.push_back({piece, pc, apart_[i].asked.products});
  }
  apart_[i].asked.pieces.clear();
}

void TracedBlock::async_commit(Unit unit) {
  Asked& asked = apart_[me()].asked;
  if (unit == Unit::store)
    asked.stores.push_back(asked.store_clock);
  else
    ++asked.products;
}

void TracedBlock::async_wait(Unit unit, unsigned pending) {
  const unsigned i = me();
  Asked& asked = apart_[i].asked;
  if (unit == Unit::store) {
    if (asked.stores.size() <= pending) return;
    asked.read = asked.stores[asked.stores.size() - pending - 1];
    apart_[i].clocks = everything(i);
    apart_[i].clocks.known[slot_of(i) + unit_slots_] = asked.read;
    return;
  }
  if (asked.reads.empty()) return;
  const Clocks all = everything(i);
  const Who reader = asynchronous(i, all);
  const auto done = [&](const Asked::Read& read) { return read.group + pending < asked.products; };
  for (const Asked::Read& read : asked.reads)
    if (done(read)) touch(reader, i, read.piece, read.pc);
  asked.reads.erase(std::remove_if(asked.reads.begin(), asked.reads.end(), done), asked.reads.end());
}

void TracedBlock::async_fence() {
  const unsigned i = me();
  apart_[i].clocks = everything(i);
  Clocks& clocks = apart_[i].clocks;
  clocks.fenced = clocks.known;  // which grows only, and is never behind
  ++known_[i].clock;
}

// A block's shared memory is gone when its threads have ended.
void TracedBlock::check_exit(unsigned i) {
  const Asked& asked = apart_[i].asked;
  if (failed_ || asked.read == asked.store_clock) return;
  if (Finding* found = place("race", asked.store_pc, 0, i))
    found->message =
        "the thread ends while a store of a tile may still read shared memory: it has to wait (store_wait)";
}

// ---------------------------------------------------------------------------------------------------------------
// Where async.h's functions come in

void async_piece(Piece piece) {
  const Silence silence;
  this_block->async_piece(piece);
}
void async_zeros(size_t bytes) {
  const Silence silence;
  this_block->async_zeros(bytes);
}
void async_load(void* barrier, int bytes, Copy copy, const void* site) {
  const Turn turn(site);
  this_block->async_load(barrier, bytes, copy);
}
void async_store(const void* site) {
  const Turn turn(site);
  this_block->async_store();
}
void async_product(const void* site) {
  const Turn turn(site);
  this_block->async_product();
}
void async_commit(Unit unit) {
  const Silence silence;
  this_block->async_commit(unit);
}
void async_wait(Unit unit, unsigned pending, const void* site) {
  const Turn turn(site);
  this_block->async_wait(unit, pending);
}
void async_fence(const void* site) {
  const Turn turn(site);
  this_block->async_fence();
}

}  // namespace trace
}  // namespace simt
