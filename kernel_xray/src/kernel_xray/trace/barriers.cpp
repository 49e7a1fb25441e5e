// barriers.cpp: the barriers of blocks, clusters and warp groups, and the collectives of warps.
#include "trace/barriers.h"

#include <algorithm>
#include <cstdio>

#include "api/device.h"

namespace simt::trace {

using Waiting = FibreThread::Waiting;

// ---------------------------------------------------------------------------------------------------------------
// The block, the cluster, the warp group

int Barriers::block(Vote vote, int predicate, const void* site) {
  BarrierQueue& barrier = cluster_.worker.blocks[cluster_.running_rank()].barrier;
  barrier.trues += predicate != 0;
  ++barrier.count;
  cluster_.suspend(Waiting::barrier, site);
  return barrier.answer_to(vote);
}

void Barriers::cluster_arrive() {
  const unsigned i = cluster_.running();
  Split& barrier = cluster_barrier_;
  if (barrier.arrived[i] > barrier.phase) return;
  barrier.arrived[i] = barrier.phase + 1;
  barrier.split = true;
  clocks_.full(i).release(barrier.arriving);
  clocks_.tick(i);
}

void Barriers::cluster(const void* site) {
  clocks_.expand();
  cluster_.suspend(Waiting::cluster, site);
}

void Barriers::warp_group(const void* site) {
  if (cluster_.index_of(cluster_.running()) / kWarpGroup == cluster_.block_threads / kWarpGroup)
    cluster_.fail("divergent-barrier", {pc_of(site)}, no_warp_group(cluster_.block_threads));
  clocks_.expand();
  cluster_.suspend(Waiting::warp_group, site);
}

void Barriers::begin_cluster() {
  for (unsigned rank = 0; rank < cluster_.worker.cluster_blocks; ++rank)
    for (Named& barrier : named_[rank])
      if (barrier.threads) barrier = {};
  Split& barrier = cluster_barrier_;
  std::fill_n(barrier.arrived.begin(), cluster_.count, 0);
  barrier.phase = 0;
  barrier.split = false;
  barrier.arriving = barrier.released = {};
  std::fill_n(asked_.begin(), cluster_.warps(), Asked{});
  at_first_ = 0;
}

// ---------------------------------------------------------------------------------------------------------------
// Registers

void Barriers::set_registers(unsigned number, bool more, const void* site) {
  const unsigned i = cluster_.running();
  if (i % kWarpSize) return;  // once a warp
  Asked& asked = asked_[i / kWarpSize];
  asked = {number, more ? pc_of(site) : 0, asked.registers != 0};
}

void Barriers::launch_bounds(unsigned threads, unsigned blocks) {
  if (threads && blocks) max_registers(kRegistersPerSm / (threads * blocks) / 8 * 8);
}

// A block has the registers with which its threads began. A setmaxnreg.inc waits until others have given up enough; where
// warps ask once, the end of all of them tells whether they do.
void Barriers::end_cluster() {
  const unsigned threads = cluster_.block_threads, warps = threads / kWarpSize;
  if (cluster_.failed || threads % kWarpSize || !at_first_) return;
  for (unsigned rank = 0; rank < cluster_.worker.cluster_blocks; ++rank) {
    const Asked* const first = &asked_[rank * warps];
    unsigned in_all = 0, waits = warps;
    bool again = false;
    for (unsigned warp = 0; warp < warps; ++warp) {
      in_all += first[warp].registers * kWarpSize;
      again |= first[warp].again;
      if (first[warp].increased_at) waits = warp;
    }
    if (again || waits == warps || in_all <= at_first_ * threads) continue;
    const unsigned i = (rank * warps + waits) * kWarpSize;
    if (Finding* found = cluster_.place("deadlock", first[waits].increased_at, 0, i))
      found->message = "the warps of a block of " + std::to_string(threads) + " threads ask for " +
                       std::to_string(in_all) + " registers with setmaxnreg; the block has " +
                       std::to_string(at_first_ * threads) + ", " + std::to_string(at_first_) +
                       " a thread by its launch bounds, so that one of them waits for ever";
  }
}

// The calling thread is one of those that named barrier `id` of its block expects.
Barriers::Named& Barriers::reach(unsigned id, unsigned threads) {
  const unsigned i = cluster_.running();
  Named& barrier = named_[cluster_.rank_of(i)][id];
  clocks_.expand();
  if (barrier.count && barrier.threads != threads)
    cluster_.fail("divergent-barrier", {cluster_.pc(i)},
                  "barrier " + std::to_string(id) + " is for " + std::to_string(threads) + " threads here and for " +
                      std::to_string(barrier.threads) + " elsewhere");
  barrier.threads = threads;
  ++barrier.count;
  clocks_.full(i).release(barrier.clocks);
  clocks_.tick(i);
  return barrier;
}

unsigned Barriers::named(unsigned id, unsigned threads, int predicate, const void* site) {
  reach(id, threads).trues += predicate != 0;
  FibreThread& me = cluster_.threads[cluster_.running()];
  me.operand = id;
  cluster_.suspend(Waiting::named, site);
  return static_cast<unsigned>(me.answer);
}

void Barriers::arrive(unsigned id, unsigned threads) { reach(id, threads); }

bool Barriers::open() {
  bool opened = false;
  for (unsigned rank = 0; rank < cluster_.worker.cluster_blocks; ++rank) {
    const Block& block = cluster_.worker.blocks[rank];
    if (!block.alive || block.barrier.count != block.alive) continue;
    open_block(rank);
    opened = true;
  }
  if (!clocks_.expanded()) return opened;  // the kernel has no other barriers
  opened |= open_cluster();
  opened |= open_warp_groups();
  opened |= open_named();
  return opened;
}

void Barriers::open_block(unsigned rank) {
  Block& block = cluster_.worker.blocks[rank];
  const unsigned size = cluster_.block_threads, begin = rank * size, end = begin + size;
  unsigned one = end, different = end;
  for (unsigned i = begin; i < end; ++i) {
    if (cluster_.threads[i].exited) continue;
    if (one == end) one = i;
    if (different == end && cluster_.state[i].site != cluster_.state[one].site) different = i;
  }
  const uint64_t pc = cluster_.pc(one);
  if (different < end)
    if (Finding* found = cluster_.place("divergent-barrier", pc, cluster_.pc(different), one))
      found->message = "threads of one block wait at different __syncthreads: thread " + std::to_string(one - begin) +
                       " at another one than thread " + std::to_string(different - begin);
  if (block.alive != size)
    if (Finding* found = cluster_.place("divergent-barrier", pc, 0, one, true))
      found->message = std::to_string(size - block.alive) + " of the block's " + std::to_string(size) +
                       " threads have ended without reaching this __syncthreads, which does not wait for them (on GPUs "
                       "before Volta it may)";
  if (cluster_.filmed) film_barrier(begin, end);
  block.barrier.open();
  clocks_.block_barrier(rank);
  for (unsigned i = begin; i < end; ++i)
    if (!cluster_.threads[i].exited) cluster_.release(i);
}

// A frame for each warp of the block: the lanes that wait.
void Barriers::film_barrier(unsigned begin, unsigned end) {
  for (unsigned first = begin; first < end; first += kWarpSize) {
    uint32_t mask = 0;
    unsigned one = end;
    for (unsigned i = first; i < std::min(end, first + kWarpSize); ++i) {
      if (!cluster_.waits(i, Waiting::barrier)) continue;
      mask |= 1u << (i - first);
      one = std::min(one, i);
    }
    if (mask) cluster_.session.film.add(cluster_.frame_of(one, Frame::What::block_barrier, cluster_.pc(one), mask));
  }
}

bool Barriers::open_cluster() {
  Split& barrier = cluster_barrier_;
  const auto arrives_now = [&](unsigned i) { return cluster_.waits(i, Waiting::cluster) && !barrier.arrived[i]; };
  bool all = true, opened = false;
  for (unsigned i = 0; i < cluster_.count && all; ++i)
    all = cluster_.threads[i].exited || barrier.arrived[i] > barrier.phase || arrives_now(i);
  if (all && !barrier.split) {  // as for all threads at once, which is faster
    clocks_.group_barrier(0, cluster_.count);
    for (unsigned i = 0; i < cluster_.count; ++i)
      if (!cluster_.threads[i].exited) cluster_.release(i);
    return true;
  }
  if (all) {
    for (unsigned i = 0; i < cluster_.count; ++i) {
      if (barrier.arrived[i] > barrier.phase) continue;
      clocks_.full(i).release(barrier.arriving);  // it has ended, or arrives and waits at once
      if (arrives_now(i)) barrier.arrived[i] = barrier.phase + 1;
    }
    barrier.released = std::move(barrier.arriving);
    barrier.arriving = {};
    barrier.split = false;
    ++barrier.phase;
  }
  for (unsigned i = 0; i < cluster_.count; ++i) {
    if (!cluster_.waits(i, Waiting::cluster) || !barrier.arrived[i] || barrier.arrived[i] > barrier.phase) continue;
    clocks_.acquire(i, barrier.released);
    barrier.arrived[i] = 0;
    cluster_.release(i);
    opened = true;
  }
  return opened;
}

bool Barriers::open_warp_groups() {
  bool opened = false;
  const unsigned groups = cluster_.block_threads / kWarpGroup;
  for (unsigned group = 0; group < cluster_.worker.cluster_blocks * groups; ++group) {
    const unsigned first = group / groups * cluster_.block_threads + group % groups * kWarpGroup;
    bool all = true;
    for (unsigned i = first; i < first + kWarpGroup && all; ++i) all = cluster_.waits(i, Waiting::warp_group);
    if (!all) continue;
    clocks_.group_barrier(first, kWarpGroup);
    for (unsigned i = first; i < first + kWarpGroup; ++i) cluster_.release(i);
    opened = true;
  }
  return opened;
}

bool Barriers::open_named() {
  bool opened = false;
  for (unsigned rank = 0; rank < cluster_.worker.cluster_blocks; ++rank) {
    for (unsigned id = 0; id < kNamedBarriers; ++id) {
      Named& barrier = named_[rank][id];
      if (!barrier.count || barrier.count < barrier.threads) continue;
      open_named(barrier, rank, id);
      opened = true;
    }
  }
  return opened;
}

void Barriers::open_named(Named& barrier, unsigned rank, unsigned id) {
  const unsigned begin = rank * cluster_.block_threads;
  for (unsigned i = begin; i < begin + cluster_.block_threads; ++i) {
    if (!cluster_.waits(i, Waiting::named) || cluster_.threads[i].operand != id) continue;
    clocks_.acquire(i, barrier.clocks);
    cluster_.threads[i].answer = barrier.trues;
    cluster_.release(i);
  }
  barrier = {};
}

// ---------------------------------------------------------------------------------------------------------------
// The warp

uint64_t Barriers::collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site) {
  const unsigned i = cluster_.running(), lane = i % kWarpSize;
  FibreThread& me = cluster_.threads[i];
  if (!(mask >> lane & 1)) {
    char text[128];
    std::snprintf(text, sizeof text, "%s with mask 0x%08x, which does not name the calling lane %u", name_of(what),
                  mask, lane);
    cluster_.fail("divergent-barrier", {pc_of(site)}, text);
  }
  me.what = what;
  me.mask = mask;
  me.operand = operand;
  me.value = value;
  cluster_.warp_state[i / kWarpSize].waiting |= 1u << lane;
  cluster_.suspend(Waiting::collective, site);
  return me.answer;
}

bool Barriers::answer(unsigned warp) {
  bool opened = false;
  const unsigned first = warp * kWarpSize;
  for (unsigned i = first; i < first + cluster_.lanes_of(warp); ++i) {
    if (!cluster_.waits(i, Waiting::collective)) continue;
    const FibreThread& t = cluster_.threads[i];
    const Collective what = t.what;
    const unsigned lanes = answer_collective(&cluster_.threads[first], cluster_.warp_state[warp], t.mask, what);
    if (!lanes) continue;
    open_collective(warp, lanes, what);
    opened = true;
  }
  return opened;
}

void Barriers::open_collective(unsigned warp, unsigned lanes, Collective what) {
  clocks_.warp_barrier(warp, lanes);
  if (cluster_.filmed) {
    const unsigned one = warp * kWarpSize + static_cast<unsigned>(__builtin_ctz(lanes));
    cluster_.session.film.add(cluster_.frame_of(one, Frame::What::warp_operation, cluster_.pc(one), lanes));
  }
  for (unsigned k = 0; k < kWarpSize; ++k) {
    if (!(lanes >> k & 1)) continue;
    const unsigned i = warp * kWarpSize + k;
    cluster_.release(i);
    const unsigned source = cluster_.threads[i].operand % kWarpSize;
    if (what != Collective::shuffle || (lanes >> source & 1)) continue;
    if (Finding* found = cluster_.place("divergent-barrier", cluster_.pc(i), 0, i))
      found->message = "a shuffle reads from lane " + std::to_string(source) + ", which takes no part in it";
  }
}

unsigned Barriers::active(const void* site) {
  FibreThread& me = cluster_.threads[cluster_.running()];
  me.value = reinterpret_cast<uintptr_t>(site);
  cluster_.suspend(Waiting::active, site);
  return static_cast<unsigned>(me.answer);
}

bool Barriers::answer_active() {
  bool any = false;
  for (unsigned warp = 0; warp < cluster_.warps(); ++warp) {
    const unsigned first = warp * kWarpSize;
    const unsigned lanes = simt::answer_active(&cluster_.threads[first], cluster_.lanes_of(warp));
    any = any || lanes;
    for (unsigned k = 0; k < kWarpSize; ++k)
      if (lanes >> k & 1) cluster_.release(first + k);
  }
  return any;
}

}  // namespace simt::trace
