// scheduler.cpp: the turns of warps and lanes.
#include "trace/scheduler.h"

#include <algorithm>

namespace simt::trace {

using Waiting = FibreThread::Waiting;

const unsigned* Scheduler::shuffled(unsigned n, unsigned* order) {
  for (unsigned i = 0; i < n; ++i) order[i] = i;
  for (unsigned i = n; i > 1; --i)  // i times a fraction of 32 bits, since a remainder takes a division
    std::swap(order[i - 1], order[(cluster_.session.random() >> 32) * i >> 32]);
  return order;
}

// ---------------------------------------------------------------------------------------------------------------
// The cluster

void Scheduler::run() {
  while (cluster_.alive && !cluster_.hopeless) {
    const bool moved = run_warps();
    if (cluster_.failed || !cluster_.alive) break;
    if (!open_barriers() && !moved && !mbarriers_.open(true) && !barriers_.answer_active())
      report_deadlock(cluster_, mbarriers_);
  }
  for (Lane& lane : cluster_.lanes) lane.length = lane.position = 0;
  replay_.what_if.end_windows();
}

// One turn for each warp; false if no thread could run.
bool Scheduler::run_warps() {
  bool moved = false;
  unsigned order[kMaxClusterThreads / kWarpSize];
  shuffled(cluster_.warps(), order);
  for (unsigned k = 0; k < cluster_.warps() && !cluster_.hopeless; ++k) {
    const unsigned first = order[k] * kWarpSize;
    for (unsigned i = first; i < first + cluster_.lanes_of(order[k]); ++i) moved = moved || cluster_.ready(i);
    run_warp(order[k]);
  }
  return moved;
}

bool Scheduler::open_barriers() {
  bool opened = barriers_.open();
  if (clocks_.expanded()) opened |= mbarriers_.open(false);
  if (opened) replay_.what_if.end_windows();
  return opened;
}

// ---------------------------------------------------------------------------------------------------------------
// The warp

// Runs a warp until all its lanes wait or have ended.
void Scheduler::run_warp(unsigned warp) {
  const unsigned first = warp * kWarpSize, n = cluster_.lanes_of(warp);
  unsigned order[kWarpSize];
  for (;;) {
    bool any = false;
    shuffled(n, order);
    if (cluster_.fences)
      for (unsigned k = 0; k < n; ++k) replay_.check(first + k);  // what is left of earlier runs
    for (unsigned k = 0; k < n; ++k) {
      const unsigned i = first + order[k];
      const Lane& lane = cluster_.lane(i);
      if (!cluster_.ready(i)) continue;
      any = true;
      // Twice what the replay looks at: with less, it would soon come back for this lane.
      if (lane.position == lane.length || lane.short_of(2 * kFar)) resume(i);
      if (cluster_.hopeless) return;
    }
    if (!any) return;
    if (cluster_.fences)
      for (unsigned k = 0; k < n; ++k) replay_.check(first + order[k]);
    replay(warp, false);
    if (cluster_.hopeless) return;
    if (cluster_.unwatched)
      for (Lane& lane : cluster_.lanes) lane.position = lane.length;
    release_replayed(warp);
    // After a failure, lanes go on only as far as they can alone.
    if (!cluster_.failed && barriers_.answer(warp)) replay_.what_if.end_window(warp);
    if (!only_spins(warp)) continue;
    replay(warp, true);
    return;
  }
}

// Replays the warp's records, as far as there are steps for it.
void Scheduler::replay(unsigned warp, bool all) {
  if (cluster_.unwatched) return;
  do replay_.run(warp, all);
  while (cluster_.steps_left == 0 && cluster_.go_on());
  if (cluster_.steps_left == 0) stop_watching();
}

// The budget is spent. After a failure, what remains is of no interest.
void Scheduler::stop_watching() {
  cluster_.hopeless = cluster_.failed || cluster_.budget != cluster_.session.budget;
  if (cluster_.hopeless) return;
  cluster_.unwatched = true;
  const unsigned i = cluster_.running();
  if (Finding* found = cluster_.place("budget", cluster_.state[i].last_pc, 0, i, true))
    found->message =
        "the first " + std::to_string(cluster_.granted) +
        " steps of this block were traced and the rest was not: give xray a larger budget= or seconds= to see it";
}

// Whether some lanes of the warp can run, and all of these wait for memory to change.
bool Scheduler::only_spins(unsigned warp) const {
  bool any = false;
  for (unsigned i = warp * kWarpSize; i < warp * kWarpSize + cluster_.lanes_of(warp); ++i) {
    if (!cluster_.ready(i)) continue;
    if (!cluster_.state[i].spinning) return false;
    any = true;
  }
  return any;
}

// Releases lanes that have waited for the replay of their records.
void Scheduler::release_replayed(unsigned warp) {
  for (unsigned i = warp * kWarpSize; i < warp * kWarpSize + cluster_.lanes_of(warp); ++i) {
    const Lane& lane = cluster_.lane(i);
    if (cluster_.waits(i, Waiting::turn) && lane.position == lane.length) cluster_.release(i);
  }
}

// ---------------------------------------------------------------------------------------------------------------
// The thread

void Scheduler::fibre_main() {
  Worker& worker = *current_worker;
  worker.in_fibre.store(true, std::memory_order_release);  // a plain move, where the default would be a fence
  Range alone{};                                           // traced code runs one thread at a time
  FaultRecord thrown = caught([&] { worker.job->run(worker.job->closure, alone); });
  if (!thrown.kind.empty()) worker.abandon(std::move(thrown));
  worker.in_fibre.store(false, std::memory_order_release);
  worker.running->exited = true;
  switch_context(worker.running->context, worker.scheduler);
}

namespace {

// Whether a full record repeats itself, with a strong access in each round: the lane polls a lock or a flag.
bool polls(const Lane& lane) {
  if (lane.length < kRecordLength) return false;
  constexpr unsigned kHalf = kRecordLength / 2;
  const Event* const last = &lane.record[lane.length - 1];
  unsigned period = 1;
  while (period < kHalf && last[-int(period)].key != last->key) ++period;
  if (period == kHalf) return false;
  bool strong = false;
  for (const Event* event = last - kHalf + 1; event <= last; ++event) {
    const Event& before = *(event - period);
    if (event->key != before.key) return false;
    if (event->kind == Kind::step || event->kind == Kind::fence) continue;
    if (event->address != before.address) return false;
    strong = strong || event->strong();
  }
  return strong;
}

}  // namespace

// Lets one thread run until it waits, ends, fails, or has filled its record.
void Scheduler::resume(unsigned i) {
  Lane& lane = cluster_.lane(i);
  Cluster::State& state = cluster_.state[i];
  lane.begin_record();
  lane.depth = state.depth;
  lane.scope = state.scope;
  lane.unwatched = cluster_.unwatched;
  lane.paused = false;
  lane.stack = reinterpret_cast<uint64_t>(cluster_.worker.stacks.low(i));
  do {
    if (lane.unknown && !asked_ && cluster_.session.ask) {
      asked_ = true;
      cluster_.session.ask(lane.unknown);
    }
    lane.unknown = 0;
    run_fibre(i, lane);
  } while (lane.unknown);
  state.depth = lane.depth;
  state.scope = lane.scope;
  if (lane.stored) lane.note_stored_value();
  cluster_.fences |= lane.fences;
  if (lane.length) state.last_pc = lane.record[lane.length - 1].pc();
  if (lane.paused && lane.paused_pc) state.last_pc = lane.paused_pc;
  state.spinning = lane.paused || polls(lane);

  record_signal_or_fault(i);
  if (!cluster_.threads[i].exited) return;
  --cluster_.alive;
  --cluster_.worker.blocks[cluster_.rank_of(i)].alive;
  units_.check_exit(i);
  cluster_.warp_state[i / kWarpSize].alive &= ~(1u << (i % kWarpSize));
}

void Scheduler::run_fibre(unsigned i, Lane& lane) {
  Worker& worker = cluster_.worker;
  FibreThread& t = cluster_.threads[i];
  worker.running = &t;
  current_thread = &t.self;
  current_lane = &lane;
  switch_context(worker.scheduler, t.context);
  current_lane = nullptr;
}

namespace {

// The report's kind of a fault that would end the kernel without tracing as well.
const char* kind_of(const std::string& kind) { return kind == "illegal-access" ? "out-of-bounds" : kind.c_str(); }

}  // namespace

// If a signal or a fault has ended the fibre: it cannot be resumed.
void Scheduler::record_signal_or_fault(unsigned i) {
  Worker& worker = cluster_.worker;
  if (worker.signal_kind) worker.fault = {worker.signal_kind, describe_signal(worker)};
  if (worker.fault.kind.empty()) return;
  const std::string kind = worker.fault.kind;
  const bool again = kind == kWithoutClusters;  // no fault of the program: launch.cpp launches it again
  if (again) {
    cluster_.failed = true;
    cluster_.fault = worker.fault;
  } else {
    cluster_.record_failure(i, kind_of(kind), {cluster_.state[i].last_pc}, worker.fault.message);
  }
  cluster_.hopeless = again || kind == "time-limit" || kind == "interrupted";
  if (kind == "interrupted") cluster_.fault.kind = kind;
  cluster_.threads[i].exited = true;
  worker.fault = {};
  worker.signal_kind = nullptr;
}

}  // namespace simt::trace
