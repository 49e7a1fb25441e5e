// mbarriers.cpp: init, arrive and wait, and the TMA loads that complete on an mbarrier.
#include "trace/mbarriers.h"

namespace simt::trace {

using Waiting = FibreThread::Waiting;

void MBarriers::begin_cluster() {
  states_.clear();
  std::fill_n(passed_.begin(), cluster_.count, Wait{});
  std::fill_n(loaders_, cluster_.worker.cluster_blocks, 0u);
}

void MBarriers::access(const Accessor& accessor, const void* barrier, Kind kind) {
  const unsigned i = cluster_.running();
  const uint64_t pc = cluster_.pc(i), at = reinterpret_cast<uint64_t>(barrier);
  Event event{};
  event.size = sizeof(MBarrier);
  event.kind = kind;
  event.key = Event::make_key(0, pc, kind, event.size);
  event.region = checked_region(cluster_.lane(i), at, event.size, kind, pc);
  if (event.region->space != Space::shared)
    cluster_.fail("out-of-bounds", {pc},
                  "an mbarrier lies in " + event.region->name + "; it has to be in shared memory");
  event.address = at - event.region->start + event.region->virtual_start;
  if (kind == Kind::atomic) event.scope = Scope::device;
  if (!cluster_.unwatched) races_.check(accessor, i, event, false);
}

void MBarriers::init(void* barrier) {
  const unsigned i = cluster_.running();
  access(clocks_.thread(i), barrier, Kind::store);
  State& state = states_[barrier];
  state = {};
  state.init = clocks_.epoch(i);
}

void MBarriers::arrive(void* barrier, int bytes, Epoch unit) {
  const unsigned i = cluster_.running();
  access(clocks_.thread(i), barrier, Kind::atomic);
  ProxyClocks known = clocks_.full(i);
  if (unit.clock && clocks_.kept()) known.generic.raise(unit);
  known.release(states_[barrier].arriving);
  states_[barrier].products |= unit.clock != 0;
  clocks_.tick(i);
  count_arrivals(barrier, 1, bytes);
}

void MBarriers::expect(void* barrier, int bytes) {
  access(clocks_.thread(cluster_.running()), barrier, Kind::atomic);
  count_arrivals(barrier, 0, bytes);
}

void MBarriers::count_arrivals(void* barrier, unsigned arrivals, int bytes) {
  MBarrier& counts = *static_cast<MBarrier*>(barrier);
  const unsigned phase = counts.phase;
  if (!count(counts, arrivals, bytes))
    cluster_.fail("divergent-barrier", {cluster_.pc(cluster_.running())}, kTooManyArrivals);
  if (counts.phase == phase) return;
  State& state = states_[barrier];
  state.arriving.release(state.released);
  state.arriving = {};
}

// Later updates of the barrier hide its init from the races' shadow memory, so a wait asks for the init itself.
void MBarriers::check_init(unsigned i, const void* barrier) {
  const Epoch init = states_[barrier].init;
  if (!clocks_.kept() || !init.clock || clocks_.full(i).generic.knows(init)) return;
  if (Finding* found = cluster_.place("race", cluster_.pc(i), 0, i))
    found->message = "a wait for an mbarrier races with its init: nothing orders them";
}

bool MBarriers::wait(void* barrier, unsigned parity, const void* site) {
  const unsigned i = cluster_.running();
  access(clocks_.thread(i), barrier, Kind::atomic);
  if (passed_[i].barrier != barrier) check_init(i, barrier);
  if (parity > 1) cluster_.fail("divergent-barrier", {cluster_.pc(i)}, kNoParity);
  Wait wait{static_cast<MBarrier*>(barrier), parity};
  const bool again = waits_[i] == wait, at_once = wait.barrier->passed(parity) && !states_[barrier].products;
  if (again ? waits_[i].open : at_once && !warp_follows(i, wait)) {
    waits_[i] = {};
    passed_[i] = wait;
    if (!again) clocks_.acquire(i, states_[barrier].released);
    return true;
  }
  waits_[i] = wait;
  cluster_.suspend(Waiting::phase, site);
  return false;
}

// Whether other lanes of thread i's warp wait for the same, or are elsewhere and may still come. One instruction asks
// for all lanes, so thread i stands back once, and they go on together.
bool MBarriers::warp_follows(unsigned i, Wait wait) const {
  const unsigned first = i / kWarpSize * kWarpSize;
  for (unsigned lane = first; lane < first + cluster_.lanes_of(i / kWarpSize); ++lane) {
    if (cluster_.waits(lane, Waiting::phase) && waits_[lane] == wait) return true;
    if (passed_[lane] == wait) continue;
    if ((cluster_.ready(lane) || cluster_.waits(lane, Waiting::turn)) && cluster_.pc(lane) != cluster_.pc(i))
      return true;
  }
  return false;
}

bool MBarriers::open(bool quiet) {
  constexpr unsigned kPatience = 64;  // rounds in which others go on: they may spin until this thread does
  bool opened = false;
  for (unsigned i = 0; i < cluster_.count; ++i) {
    Wait& wait = waits_[i];
    if (!cluster_.waits(i, Waiting::phase) || !wait.barrier->passed(wait.parity)) continue;
    if (!quiet && states_[wait.barrier].products && ++wait.rounds < kPatience) continue;
    wait.open = true;
    clocks_.acquire(i, states_[wait.barrier].released);  // now: the barrier may go on before the thread does
    cluster_.release(i);
    opened = true;
  }
  return opened;
}

Epoch MBarriers::begin_load(void* barrier, bool sent) {
  const unsigned i = cluster_.running(), blocks = cluster_.worker.cluster_blocks;
  Epoch& load = states_[barrier].load;
  if (!load.slot) {
    const auto offset = static_cast<size_t>(static_cast<char*>(barrier) - cluster_.worker.shared);
    const unsigned rank = static_cast<unsigned>(offset / kSharedLimit) % blocks;
    if (loaders_[rank] == kMaxLoaders)
      cluster_.fail("unsupported", {cluster_.pc(i)},
                    "not supported by the simulator: loads for more than 63 mbarriers in traced mode");
    load.slot = clocks_.slots().load(rank, loaders_[rank]++);
  }
  races_.set_issuer(load.slot, {cluster_.rank_of(i), cluster_.index_of(i), sent});
  ++load.clock;
  return load;
}

void MBarriers::complete_load(void* barrier, Epoch load, const Accessor& loader, int bytes, bool sent) {
  const unsigned i = cluster_.running();
  State& state = states_[barrier];
  Accessor counter = loader;
  ProxyClocks fenced;
  // A remark: NVIDIA's own tutorials leave this fence out where a barrier follows the init.
  if (loader.clocks->generic.knows(state.init) && !loader.clocks->async.knows(state.init)) {
    fenced = *loader.clocks;
    fenced.fence();
    counter.clocks =
        &fenced;  // the init may still be the last access to the mbarrier: of another block's, by multicast
    if (Finding* found = cluster_.place("race", cluster_.pc(i), 0, i, true))
      found->message =
          std::string(sent ? "a value that is sent" : "a load of a tile") +
          " counts on an mbarrier that no fence has made known to units (fence.mbarrier_init or fence.proxy.async)";
  }
  access(counter, barrier, Kind::atomic);
  if (clocks_.kept()) {
    const VectorClock none(loader.clocks->generic.slots());
    ProxyClocks loaded{none, none};
    loaded.generic.raise(load);
    loaded.release(state.arriving);
    if (sent) clocks_.full(i).release(state.arriving);
  }
  clocks_.tick(i);
  count_arrivals(barrier, 0, -bytes);
}

}  // namespace simt::trace
