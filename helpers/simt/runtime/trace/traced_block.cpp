// traced_block.cpp: runs the threads of a traced block, warp by warp, and notes what ends them.
#include "trace/traced_block.h"

#include <algorithm>

namespace simt {
namespace trace {

namespace {

// The kinds of faults that a report knows. What would end the kernel in fast mode too keeps its name.
const char* kind_of(const std::string& kind) {
  if (kind == "illegal-access") return "out-of-bounds";
  if (kind == "time-limit") return "deadlock";
  return kind.c_str();
}

}  // namespace

__thread Lane* current_lane SIMT_TLS = nullptr;
__thread TracedBlock* this_block SIMT_TLS = nullptr;

TracedBlock::TracedBlock(const Job& job, Session& session, LaunchInfo& info)
    : budget(session.budget),
      job_(job),
      session_(session),
      info_(info),
      worker_(Worker::current()),
      kernel_(job.site->kernel) {
  for (Lane& lane : lanes_) lane.regions = &session.regions;
}

const unsigned* TracedBlock::shuffled(unsigned n, unsigned* order) {
  for (unsigned i = 0; i < n; ++i) order[i] = i;
  for (unsigned i = n; i > 1; --i) std::swap(order[i - 1], order[session_.random() % i]);
  return order;
}

// The first block's number and index.
void TracedBlock::begin(uint3 index, uint64_t number) {
  const dim3 block = job_.config.block;
  worker_.begin_cluster(job_, index);
  const unsigned ranks = worker_.cluster_blocks;
  if (clocks_) std::fill_n(apart_.begin(), count_, Apart{});
  number_ = number;
  block_threads_ = block.x * block.y * block.z;
  count_ = alive_ = ranks * block_threads_;
  unit_slots_ = (block_threads_ + kWarpSize - 1) / kWarpSize * kWarpSize;
  slot_shift_ = 0;
  while (1u << slot_shift_ < 2 * unit_slots_ + kMaxBarriers) ++slot_shift_;
  steps_left_ = budget;
  failed_ = clocks_ = false;
  races_.begin_cluster(ranks, slot_shift_);
  barriers_.clear();
  shared_sites_.clear();
  shared_used_ = job_.config.shared_bytes;
  shared_declared_ = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    blocks_[rank] = {};
    units_[rank] = 0;
  }
  if (shared_used_) add_shared(0, shared_used_, "the dynamic shared memory");
  for (unsigned w = 0; w * kWarpSize < count_; ++w) {
    const unsigned n = lanes_of(w);
    warps_[w] = {n == kWarpSize ? kFullMask : (1u << n) - 1, 0};
  }
  for (unsigned i = 0; i < count_; ++i) {
    FibreThread& t = threads_[i];
    const unsigned j = i % block_threads_;
    const Geometry& geometry = worker_.blocks[rank_of(i)].geometry;
    t.self = {{j % block.x, j / block.x % block.y, j / (block.x * block.y)}, &geometry, j};
    t.waiting = FibreThread::Waiting::no;
    t.exited = false;
    known_[i] = {nullptr, 0, 0, false, 1, 0, {}, {}};
    make_context(t.context, worker_.stacks.low(i), worker_.stacks.top(i), &TracedBlock::fibre_main);
  }
}

uint64_t TracedBlock::number_of(uint64_t first, unsigned rank) const {
  const dim3 grid = job_.config.grid, cluster = job_.site->cluster;
  return first + rank % cluster.x +
         uint64_t{grid.x} * (rank / cluster.x % cluster.y + uint64_t{grid.y} * (rank / (cluster.x * cluster.y)));
}

bool TracedBlock::run(uint3 index, uint64_t number) {
  begin(index, number);
  this_block = this;
  simt::Thread* outside = current_thread;
  unsigned order[kMaxThreads / kWarpSize];
  const unsigned warps = (count_ + kWarpSize - 1) / kWarpSize;
  while (alive_ && !hopeless) {
    bool moved = false;
    shuffled(warps, order);
    for (unsigned k = 0; k < warps && !hopeless; ++k) {
      const unsigned first = order[k] * kWarpSize;
      for (unsigned i = first; i < first + lanes_of(order[k]); ++i) moved = moved || ready(i);
      run_warp(order[k]);
    }
    if (failed_ || !alive_) break;
    if (!release_barriers() && !moved && !resolve_active()) deadlock();
  }
  for (Lane& lane : lanes_) lane.length = lane.position = 0;
  current_thread = outside;
  worker_.running = nullptr;
  this_block = nullptr;
  for (uint64_t start : shared_regions_) session_.regions.remove(start);
  shared_regions_.clear();
  info_.shared_static = std::max(info_.shared_static, shared_declared_);
  return !failed_;
}

void TracedBlock::fibre_main() {
  TracedBlock& block = *this_block;
  FaultRecord thrown;
  try {
    block.job_.thread(block.job_.closure);
  } catch (const Fault& error) {
    thrown = {error.kind, error.message};
  } catch (const std::exception& error) {
    thrown = {"exception", std::string("an exception was thrown in the kernel: ") + error.what()};
  } catch (...) {
    thrown = {"exception", "an exception was thrown in the kernel"};
  }
  if (!thrown.kind.empty()) block.worker_.abandon(std::move(thrown));
  block.running_->exited = true;
  block.stop();
}

// Lets one thread run until it waits, exits, fails, or has filled its record.
void TracedBlock::resume(unsigned i) {
  FibreThread& t = threads_[i];
  Thread& known = known_[i];
  Lane& lane = lanes_[i % kWarpSize];
  lane.length = lane.position = 0;
  lane.depth = known.depth;
  lane.fenced = known.fenced;
  lane.stack = reinterpret_cast<uint64_t>(worker_.stacks.low(i));
  do {
    if (lane.unknown && !asked_ && session_.ask) asked_ = true, session_.ask(lane.unknown);
    lane.unknown = 0;
    running_ = &t;
    worker_.running = &t;
    current_thread = &t.self;
    current_lane = &lane;
    worker_.in_fibre.store(true);
    switch_context(worker_.scheduler, t.context);
    worker_.in_fibre.store(false);
    current_lane = nullptr;
  } while (lane.unknown);
  known.depth = lane.depth;
  known.fenced = lane.fenced;
  if (lane.length) known.last_pc = lane.record[lane.length - 1].pc();

  if (worker_.signal_kind) worker_.fault = {worker_.signal_kind, describe_signal(worker_)};
  if (!worker_.fault.kind.empty()) {  // what fast mode finds too: the fibre is lost
    const std::string kind = worker_.fault.kind;
    record_failure(i, kind_of(kind), {known.last_pc}, worker_.fault.message);
    hopeless = kind == "time-limit" || kind == "interrupted";
    if (kind == "interrupted") fault.kind = kind;
    t.exited = true;
    worker_.fault = {};
    worker_.signal_kind = nullptr;
  }
  if (!t.exited) return;
  --alive_;
  --worker_.blocks[rank_of(i)].alive;
  check_exit(i);
  warps_[i / kWarpSize].alive &= ~(1u << (i % kWarpSize));
}

// Lets lanes go on that have waited for what they recorded to be played.
void TracedBlock::turn_over(unsigned w) {
  for (unsigned k = 0; k < lanes_of(w); ++k) {
    FibreThread& t = threads_[w * kWarpSize + k];
    if (t.exited || t.waiting != FibreThread::Waiting::turn || lanes_[k].position < lanes_[k].length) continue;
    t.waiting = FibreThread::Waiting::no;
  }
}

// Runs warp w until all its lanes wait or have exited.
void TracedBlock::run_warp(unsigned w) {
  const unsigned first = w * kWarpSize, n = lanes_of(w);
  unsigned order[kWarpSize];
  for (;;) {
    bool any = false;
    shuffled(n, order);
    for (unsigned k = 0; k < n; ++k) {
      const unsigned lane = order[k];
      if (!ready(first + lane)) continue;
      any = true;
      if (lanes_[lane].position == lanes_[lane].length) resume(first + lane);
      if (hopeless) return;
    }
    if (!any) return;
    play(w);
    turn_over(w);
    if (steps_left_ == 0) {
      hopeless = true;
      const unsigned i = me();
      if (!failed_)
        record_failure(i, "deadlock", {known_[i].last_pc},
                       "the block spent its budget of instructions: an endless loop?");
      return;
    }
    if (failed_) continue;  // the other lanes go as far as they can alone
    for (unsigned k = 0; k < n; ++k) {
      const FibreThread& t = threads_[first + k];
      if (t.waiting == FibreThread::Waiting::collective && !t.exited) complete(w, t.mask, t.what);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Faults

Finding* TracedBlock::place(const char* kind, uint64_t pc, uint64_t other_pc, unsigned i) {
  const unsigned rank = rank_of(i);
  Finding* found =
      session_.place(kind, kernel_, pc, other_pc, number_of(number_, rank) * kMaxThreads + threads_[i].self.linear);
  if (found) found->block = index_of_block(rank), found->thread = threads_[i].self.thread_index;
  return found;
}

void TracedBlock::record_failure(unsigned i, const char* kind, Place where, const std::string& message) {
  if (Finding* found = place(kind, where.pc, 0, i)) {
    found->message = message;
    if (where.file) found->file = where.file, found->line = where.line;
  }
  constexpr uint64_t kStepsAfterFailure = 1'000'000;  // a lane that now waits for ever is no second fault
  steps_left_ = std::min(steps_left_, kStepsAfterFailure);
  if (failed_ && failed_thread_ <= i) return;
  failed_ = true;
  failed_thread_ = i;
  worker_.running = &threads_[i];
  fault = {kind, message + "\n  in " + simt::where(worker_)};
}

void TracedBlock::fail(const char* kind, Place where, const std::string& message) {
  record_failure(me(), kind, where, message);
  running_->exited = true;
  stop();
  __builtin_unreachable();
}

// ---------------------------------------------------------------------------------------------------------------
// Where the run-time library's device side and the hooks come in.

bool in_traced_block() { return this_block != nullptr && in_kernel(); }
void stop_lane() { this_block->stop(); }
int barrier(Vote vote, int predicate, const void* site) {
  const Silence silence;
  return this_block->barrier(vote, predicate, site);
}
uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site) {
  const Silence silence;
  return this_block->collective(what, mask, value, operand, site);
}
unsigned active(const void* site) {
  const Silence silence;
  return this_block->active(site);
}
void cluster_barrier(const void* site) {
  const Silence silence;
  this_block->cluster_barrier(site);
}
void warp_group_barrier(const void* site) {
  const Silence silence;
  this_block->warp_group_barrier(site);
}
unsigned cluster_rank() { return this_block->cluster_rank(); }
void yield() { this_block->stop(); }
void* shared_static(const SharedSite* site, size_t bytes, size_t alignment) {
  const Silence silence;
  return this_block->shared_static(site, bytes, alignment);
}
void lane_fault(const char* kind, Place where, const std::string& message) { this_block->fail(kind, where, message); }

}  // namespace trace
}  // namespace simt
