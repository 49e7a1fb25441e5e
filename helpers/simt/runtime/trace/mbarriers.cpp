// mbarriers.cpp: what the threads of a cluster know of each other's accesses, and how mbarriers pass it on.
//
// Each thread has a clock, which goes on with each synchronisation; so has each unit that works for threads
// (units.cpp). What a thread knows are clocks: of whom it has seen all accesses up to when. An arrival leaves what
// the thread knows at the mbarrier, and who has waited for the phase takes it up.
#include <algorithm>

#include "trace/traced_block.h"

namespace simt {
namespace trace {

// What thread i knows, itself and the barriers of its block and warp included.
Clocks TracedBlock::everything(unsigned i) const {
  const Thread& t = known_[i];
  Clocks all = apart_[i].clocks;
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
    if (chosen(k) && !threads_[first + k].exited) apart_[first + k].clocks = all;
}

// ---------------------------------------------------------------------------------------------------------------
// mbarriers

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

void TracedBlock::mbarrier_init(void* barrier) {
  const unsigned i = me();
  touch_barrier(who(i), barrier, Kind::store);
  barriers_[barrier] = {};
  barriers_[barrier].init_slot = slot_of(i), barriers_[barrier].init_clock = known_[i].clock;
}

void TracedBlock::mbarrier_arrive(void* barrier, int bytes) {
  const unsigned i = me();
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
  touch_barrier(who(i), barrier, Kind::atomic);
  if (!static_cast<MBarrier*>(barrier)->passed(parity)) return false;
  apart_[i].clocks.join(barriers_[barrier].released);
  return true;
}

void TracedBlock::wait_for_phase(void* barrier, unsigned parity, const void* site) {
  apart_[me()].barrier = static_cast<MBarrier*>(barrier);
  apart_[me()].parity = parity;
  wait(FibreThread::Waiting::phase, site);
}

// ---------------------------------------------------------------------------------------------------------------
// Where async.h's functions come in

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

}  // namespace trace
}  // namespace simt
