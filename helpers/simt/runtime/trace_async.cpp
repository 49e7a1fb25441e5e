// trace_async.cpp: what a traced block knows of mbarriers, and of units that read and write for its threads.
//
// Each thread has a clock, which goes on with each synchronisation; so has each unit: the one that loads tiles for an
// mbarrier, and the one that stores a thread's. What a thread knows of the others are clocks (trace.h), which an arrival
// leaves at an mbarrier and who waits there takes up. A load's clock goes to its mbarrier; a store's, to the thread that
// waits for it, and only for what it reads: when its writes are done, no wait that there is here tells. A product reads
// when it is asked for and, since it may be late, once more when it is waited for.
//
// Units do not see what a thread has written before a fence has made it known to them; clocks are kept for that too.
#include <algorithm>

#include "trace_block.h"

namespace simt {
namespace trace {

// ---------------------------------------------------------------------------------------------------------------
// Knowledge

// What thread i knows, itself and the barriers of its block and warp included.
Clocks TracedBlock::everything(unsigned i) const {
  const Thread& t = known_[i];
  Clocks all = t.clocks;
  if (all.empty()) {
    all.known.assign(size_t{worker_.cluster_blocks} << slot_shift_, 0);
    all.fenced = all.known;
  }
  const unsigned block = rank_of(i) * block_threads_, warp = i / kWarpSize * kWarpSize;
  auto learn = [&](unsigned j, uint32_t clock) {
    uint32_t& known = all.known[slot_of(j)];
    known = std::max(known, clock);
  };
  for (unsigned j = block; j < block + block_threads_; ++j) learn(j, known_[j].at_barrier);
  for (unsigned k = 0; k < kWarpSize && warp + k < count_; ++k) learn(warp + k, t.warp_knows.of[k]);
  learn(i, t.clock);
  return all;
}

// All of these threads, of whose first 32 `lanes` are chosen, know what each of them knows.
void TracedBlock::share(unsigned first, unsigned count, unsigned lanes) {
  auto chosen = [&](unsigned k) { return k >= kWarpSize || (lanes >> k & 1); };
  Clocks all;
  for (unsigned k = 0; k < count; ++k)
    if (chosen(k)) all.join(everything(first + k));
  for (unsigned k = 0; k < count; ++k)
    if (chosen(k) && !threads_[first + k].exited) known_[first + k].clocks = all;
}

// ---------------------------------------------------------------------------------------------------------------
// Accesses

Who TracedBlock::unit(unsigned slot, uint32_t clock, const Clocks& clocks) {
  Who unit = who(me());
  unit.slot = slot, unit.clock = clock, unit.clocks = &clocks;
  unit.unit = unit.asynchronous = true;
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

void TracedBlock::touch_barrier(const Who& who, const void* barrier, Kind kind) {
  const unsigned i = me();
  const uint64_t pc = pc_of(known_[i].site), at = reinterpret_cast<uint64_t>(barrier);
  Event event{};
  event.size = sizeof(MBarrier), event.kind = kind;
  event.key = Event::make_key(0, pc, kind, event.size);
  event.region = checked_region(lanes_[i % kWarpSize], at, event.size, kind, pc);
  if (event.region->space != Space::shared)
    fail("out-of-bounds", {pc}, "an mbarrier lies in " + event.region->name + "; it has to be in shared memory");
  event.address = at - event.region->start + event.region->virtual_start;
  event.poison = kind == Kind::store ? 0 : 0xff;
  check_written(i, event);
  check_race(who, i, event);
}

// One line of the report for all tiles that one place in the source asks for.
void TracedBlock::count_tile(Kind kind) {
  constexpr uint64_t kSector = 32;
  uint64_t sectors = 0, bytes = 0;
  for (const Piece& piece : known_[me()].asked.pieces) {
    const Region* region = session_.regions.find(piece.address);
    if (!region || region->space != Space::global) continue;
    const uint64_t first = piece.address - region->start + region->virtual_start;
    sectors += (first + piece.bytes - 1) / kSector - first / kSector + 1;
    bytes += piece.bytes;
  }
  if (!bytes) return;  // the tile is outside the matrix, or another block's load of it is counted
  Counts& counts = session_.counts[{kernel_, pc_of(known_[me()].site), kind}];
  counts.space = Space::global;
  counts.requests += 1, counts.lanes += 1;
  counts.sectors += sectors;
  counts.ideal_sectors += (bytes + kSector - 1) / kSector;
  counts.size = std::max(counts.size, static_cast<uint32_t>(bytes));
}

// ---------------------------------------------------------------------------------------------------------------
// mbarriers

void TracedBlock::mbarrier_init(void* barrier) {
  clocks_ = true;
  const unsigned i = me();
  touch_barrier(who(i), barrier, Kind::store);
  barriers_[barrier] = {};
  barriers_[barrier].init_slot = slot_of(i), barriers_[barrier].init_clock = known_[i].clock;
}

void TracedBlock::mbarrier_arrive(void* barrier, int bytes) {
  const unsigned i = me();
  clocks_ = true;
  touch_barrier(who(i), barrier, Kind::atomic);
  barriers_[barrier].arriving.join(everything(i));
  ++known_[i].clock;
  advance(*static_cast<MBarrier*>(barrier), 1, bytes);
}

void TracedBlock::advance(MBarrier& barrier, unsigned arrivals, int bytes) {
  const unsigned phase = barrier.phase;
  if (!count(barrier, arrivals, bytes)) fail("divergent-barrier", {pc_of(known_[me()].site)}, kTooManyArrivals);
  if (barrier.phase == phase) return;
  BarrierKnowledge& known = barriers_[&barrier];
  known.released.join(known.arriving);
  known.arriving = {};
}

bool TracedBlock::mbarrier_passes(void* barrier, unsigned parity) {
  const unsigned i = me();
  clocks_ = true;
  touch_barrier(who(i), barrier, Kind::atomic);
  if (!static_cast<MBarrier*>(barrier)->passed(parity)) return false;
  known_[i].clocks.join(barriers_[barrier].released);
  return true;
}

void TracedBlock::wait_for_phase(void* barrier, unsigned parity, const void* site) {
  known_[me()].barrier = static_cast<MBarrier*>(barrier);
  known_[me()].parity = parity;
  wait(FibreThread::Waiting::phase, site);
}

// ---------------------------------------------------------------------------------------------------------------
// Units

void TracedBlock::async_load(void* barrier, int bytes) {
  const unsigned i = me();
  clocks_ = true;
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
  for (const Piece& piece : known_[i].asked.pieces) touch(loader, i, piece, pc_of(known_[i].site));
  touch_barrier(loader, barrier, Kind::atomic);
  if (all.known[known.init_slot] >= known.init_clock && all.fenced[known.init_slot] < known.init_clock)
    if (Finding* found = place("race", pc_of(known_[i].site), 0, i))
      found->message = "a load of a tile counts on an mbarrier that no fence has made known to units (fence_init)";
  count_tile(Kind::tile_load);
  known_[i].asked.pieces.clear();
  Clocks arrived{std::vector<uint32_t>(all.known.size()), std::vector<uint32_t>(all.known.size())};
  arrived.known[known.unit_slot] = known.unit_clock;
  known.arriving.join(arrived);
  ++known_[i].clock;
  advance(*static_cast<MBarrier*>(barrier), 0, -bytes);
}

void TracedBlock::async_store() {
  const unsigned i = me();
  clocks_ = true;
  const Clocks all = everything(i);
  Asked& asked = known_[i].asked;
  asked.store_pc = pc_of(known_[i].site);
  Who storer = unit(slot_of(i) + unit_slots_, ++asked.store_clock, all);
  for (const Piece& piece : known_[i].asked.pieces) {
    storer.clock = piece.write ? ~0u : asked.store_clock;  // nobody learns when a write is done
    touch(storer, i, piece, asked.store_pc);
  }
  count_tile(Kind::tile_store);
  known_[i].asked.pieces.clear();
  ++known_[i].clock;
}

void TracedBlock::async_product() {
  const unsigned i = me();
  clocks_ = true;
  const Clocks all = everything(i);
  Who reader = who(i);
  reader.clocks = &all, reader.asynchronous = true;
  const uint64_t pc = pc_of(known_[i].site);
  for (const Piece& piece : known_[i].asked.pieces) {
    touch(reader, i, piece, pc);
    known_[i].asked.reads.push_back({piece, pc, known_[i].asked.products});
  }
  known_[i].asked.pieces.clear();
}

void TracedBlock::async_commit(Unit unit) {
  Asked& asked = known_[me()].asked;
  if (unit == Unit::store)
    asked.stores.push_back(asked.store_clock);
  else
    ++asked.products;
}

void TracedBlock::async_wait(Unit unit, unsigned pending) {
  const unsigned i = me();
  Asked& asked = known_[i].asked;
  if (unit == Unit::store) {
    if (asked.stores.size() <= pending) return;
    asked.read = asked.stores[asked.stores.size() - pending - 1];
    known_[i].clocks = everything(i);
    known_[i].clocks.known[slot_of(i) + unit_slots_] = asked.read;
    return;
  }
  if (asked.reads.empty()) return;
  const Clocks all = everything(i);
  Who reader = who(i);
  reader.clocks = &all, reader.asynchronous = true;
  const auto done = [&](const Asked::Read& read) { return read.group + pending < asked.products; };
  for (const Asked::Read& read : asked.reads)
    if (done(read)) touch(reader, i, read.piece, read.pc);
  asked.reads.erase(std::remove_if(asked.reads.begin(), asked.reads.end(), done), asked.reads.end());
}

void TracedBlock::async_fence() {
  const unsigned i = me();
  clocks_ = true;
  known_[i].clocks = everything(i);
  Clocks& clocks = known_[i].clocks;
  clocks.fenced = clocks.known;  // which grows only, and is never behind
  ++known_[i].clock;
}

// A block's shared memory is gone when its threads have ended.
void TracedBlock::check_exit(unsigned i) {
  const Asked& asked = known_[i].asked;
  if (failed_ || asked.read == asked.store_clock) return;
  if (Finding* found = place("race", asked.store_pc, 0, i))
    found->message = "the thread ends while a store of a tile may still read shared memory: it has to wait (store_wait)";
}

// ---------------------------------------------------------------------------------------------------------------
// Where async.h's functions come in. A thread does one of them when its accesses before it have been played.

namespace {

class Turn {
 public:
  explicit Turn(const void* site) {
    this_block->take_turn(site);
    silence_.begin();
  }

 private:
  Silence silence_;
};

}  // namespace

void mbarrier_init(void* barrier, const void* site) {
  const Turn turn(site);
  this_block->mbarrier_init(barrier);
}
void mbarrier_arrive(void* barrier, int bytes, const void* site) {
  const Turn turn(site);
  this_block->mbarrier_arrive(barrier, bytes);
}
void mbarrier_wait(void* barrier, unsigned parity, const void* site) {
  for (;;) {
    const Turn turn(site);
    if (this_block->mbarrier_passes(barrier, parity)) return;
    this_block->wait_for_phase(barrier, parity, site);
  }
}
void async_piece(Piece piece) {
  const Silence silence;
  this_block->async_piece(piece);
}
void async_load(void* barrier, int bytes, const void* site) {
  const Turn turn(site);
  this_block->async_load(barrier, bytes);
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
