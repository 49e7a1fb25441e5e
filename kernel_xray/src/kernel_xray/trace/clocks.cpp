// clocks.cpp: what each barrier does to the clocks of the threads that pass it.
#include "trace/clocks.h"

namespace simt::trace {

void Clocks::begin_cluster() {
  if (expanded_) std::fill(vectors_.begin(), vectors_.end(), ProxyClocks{});
  expanded_ = false;
  fences_.clear();
  slots_ = Slots(cluster_.block_threads);
  for (BlockClock& block : blocks_) block = {};
  for (unsigned i = 0; i < cluster_.count; ++i) {
    Thread& t = threads_[i];
    t.clock = 1;
    t.at_barrier = 0;
    t.slot = slots_.thread(i);
    t.block = &blocks_[cluster_.rank_of(i)];
    t.warp = {};
    if (!t.grid.empty()) t.grid.clear();
  }
}

void Clocks::block_barrier(unsigned rank) {
  BlockClock& block = blocks_[rank];
  const unsigned begin = rank * cluster_.block_threads, end = begin + cluster_.block_threads;
  for (unsigned i = begin; i < end; ++i) {
    Thread& t = threads_[i];
    t.at_barrier = t.clock;
    if (const Fence* last = fence(i, Scope::cluster); last && last->phase == block.phase)
      raise_fenced(i, *last, block.grid);
    if (cluster_.threads[i].exited || t.grid.empty()) continue;
    block.grid.join(t.grid);
    t.grid.clear();
  }
  group_barrier(begin, cluster_.block_threads);
  ++block.phase;
}

void Clocks::group_barrier(unsigned first, unsigned count) {
  if (expanded_ && kept()) join(first, count, kFullMask);
  for (unsigned i = first; i < first + count; ++i) tick(i);
}

void Clocks::warp_barrier(unsigned warp, unsigned lanes) {
  const unsigned first = warp * kWarpSize;
  if (expanded_ && kept()) join(first, cluster_.lanes_of(warp), lanes);
  WarpClock joined{};
  GridClock grid;
  for (unsigned k = 0; k < kWarpSize; ++k) {
    if (!(lanes >> k & 1)) continue;
    Thread& t = threads_[first + k];
    joined.join(t.warp);
    joined.of[k] = std::max(joined.of[k], t.clock);
    if (!t.grid.empty()) grid.join(t.grid);
    tick(first + k);
  }
  for (unsigned k = 0; k < kWarpSize; ++k) {
    if (!(lanes >> k & 1)) continue;
    threads_[first + k].warp = joined;
    if (!grid.empty()) threads_[first + k].grid = grid;
  }
}

// Joins the full vector clocks of `count` threads, and gives the join to those that have not exited. Of the first 32
// threads, only `lanes` take part.
void Clocks::join(unsigned first, unsigned count, unsigned lanes) {
  const auto takes_part = [&](unsigned k) { return k >= kWarpSize || (lanes >> k & 1); };
  ProxyClocks joined;
  for (unsigned k = 0; k < count; ++k)
    if (takes_part(k)) full(first + k).release(joined);
  for (unsigned k = 0; k < count; ++k)
    if (takes_part(k) && !cluster_.threads[first + k].exited) vectors_[first + k] = joined;
}

ProxyClocks Clocks::full(unsigned i) const {
  if (!kept()) return {};
  ProxyClocks all = vectors_[i];
  if (all.empty()) {
    all.generic = VectorClock(size_t{cluster_.worker.cluster_blocks} << slots_.shift());
    all.async = all.generic;
  }
  const unsigned block = cluster_.rank_of(i) * cluster_.block_threads, warp = i / kWarpSize * kWarpSize;
  for (unsigned j = block; j < block + cluster_.block_threads; ++j)
    all.generic.raise({slots_.thread(j), threads_[j].at_barrier});
  for (unsigned k = 0; k < kWarpSize && warp + k < cluster_.count; ++k)
    all.generic.raise({slots_.thread(warp + k), threads_[i].warp.of[k]});
  all.generic.raise(epoch(i));
  return all;
}

void Clocks::acquire(unsigned i, Epoch epoch) {
  if (!kept()) return;
  vectors_[i] = full(i);
  vectors_[i].generic.raise(epoch);
}

void Clocks::memory_fence(unsigned i, Scope scope) {
  fenced_ = true;
  narrow_fences_ |= scope != Scope::device;
  if (fences_.empty()) fences_.resize(size_t{cluster_.count} * kScopes);
  fences_[i * kScopes + unsigned(scope) - 1] = {blocks_[cluster_.rank_of(i)].phase, threads_[i].clock,
                                                threads_[i].warp};
  tick(i);
}

// The last fence of thread i with this scope or a wider one, or null.
const Clocks::Fence* Clocks::fence(unsigned i, Scope scope) const {
  const Fence* last = nullptr;
  for (unsigned s = unsigned(scope); s <= kScopes && !fences_.empty(); ++s)
    if (const Fence& one = fences_[i * kScopes + s - 1]; one.clock && (!last || one.clock > last->clock)) last = &one;
  return last;
}

bool Clocks::release(unsigned i, Scope scope, GridClock& into) const {
  into.join(blocks_[cluster_.rank_of(i)].grid);
  const Fence* const last = fence(i, scope);
  if (!last) return false;
  into.join(threads_[i].grid);
  raise_fenced(i, *last, into);
  into.raise_strong(block_of(static_cast<uint32_t>(cluster_.number), slots_.thread(i), slots_.shift()), epoch(i));
  return true;
}

// What thread i knew of its warp, itself included, at a fence.
void Clocks::raise_fenced(unsigned i, const Fence& fence, GridClock& into) const {
  const unsigned warp = i / kWarpSize * kWarpSize;
  const uint64_t block = block_of(static_cast<uint32_t>(cluster_.number), slots_.thread(i), slots_.shift());
  for (unsigned k = 0; k < kWarpSize; ++k)
    if (fence.warp.of[k]) into.raise(block, fence.phase, {slots_.thread(warp + k), fence.warp.of[k]});
  into.raise(block, fence.phase, {slots_.thread(i), fence.clock});
}

void Clocks::fence(unsigned i) {
  vectors_[i] = full(i);
  vectors_[i].fence();
  tick(i);
}

}  // namespace simt::trace
