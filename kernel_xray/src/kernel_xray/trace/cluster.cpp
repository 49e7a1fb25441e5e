// cluster.cpp: where a cluster's threads begin, how they are suspended, and their findings and failures.
#include "trace/cluster.h"

#include <algorithm>

namespace simt::trace {

__thread Lane* current_lane SIMT_TLS = nullptr;

namespace {
// Steps of a second or so, by which the watchdog sees that a block goes on: a tenth where each is counted in many manners.
uint64_t grant(const Session& session) { return session.asks_what_if ? 2'000'000 : 20'000'000; }
}  // namespace

std::string name_of(const Job& job) {
  const Site& site = *job.site;
  const auto code = reinterpret_cast<uint64_t>(site.guessed ? site.function : reinterpret_cast<const void*>(job.run));
  return site.function && !site.guessed ? site.kernel : site.kernel + (" @" + std::to_string(code));
}

Cluster::Cluster(const Job& new_job, Session& of)
    : job(new_job), session(of), worker(Worker::current()), kernel(name_of(new_job)), budget(of.budget) {
  for (unsigned k = 0; k < kWarpSize; ++k) {
    lanes[k].record = &records_[k * kRecordStride];
    lanes[k].regions = &session.regions;
  }
}

void Cluster::begin(uint3 index, uint64_t new_number, void (*entry)()) {
  const dim3 block = job.config.block;
  worker.begin_cluster(job, index);
  number = new_number;
  granted = steps_left = std::min(budget, grant(session));
  unwatched = failed = false;
  block_threads = block.x * block.y * block.z;
  count = alive = worker.cluster_blocks * block_threads;
  filmed = false;
  for (unsigned rank = 0; rank < worker.cluster_blocks; ++rank)
    filmed = filmed || session.film.wants(number_of(number, rank));
  for (Lane& lane : lanes) lane.filmed = filmed;
  for (unsigned w = 0; w < warps(); ++w) {
    const unsigned n = lanes_of(w);
    warp_state[w] = {n == kWarpSize ? kFullMask : (1u << n) - 1, 0};
  }
  uint3 at{};
  for (unsigned i = 0, j = 0, rank = 0; i < count; ++i) {
    FibreThread& t = threads[i];
    t.self = {at, &worker.blocks[rank].geometry, j};
    if (++at.x == block.x) at.x = 0, ++at.y;
    if (at.y == block.y) at.y = 0, ++at.z;
    if (++j == block_threads) at = {}, j = 0, ++rank;
    t.waiting = FibreThread::Waiting::no;
    t.exited = false;
    state[i] = {};
    make_context(t.context, worker.stacks.open(i), worker.stacks.top(i), entry);
  }
}

bool Cluster::go_on() {
  if (failed) return false;
  const bool more = budget == session.budget && session.has_time();  // it differs after a failure
  steps_left = granted < budget ? std::min(budget - granted, grant(session)) : more ? grant(session) : 0;
  granted += steps_left;
  worker.blocks_started.fetch_add(1);
  if (steps_left) session.tell(kernel, number, granted);
  return steps_left > 0;
}

// A signal in the middle of a switch must not end the fibre.
void Cluster::suspend() {
  worker.enter_fibre(false);
  switch_context(worker.running->context, worker.scheduler);
  worker.enter_fibre(true);
}

void Cluster::pause() {
  lane(running()).paused = true;
  suspend();
}

void Cluster::suspend(FibreThread::Waiting why, const void* site) {
  worker.running->waiting = why;
  state[running()].site = site;
  suspend();
}

uint64_t Cluster::number_of(uint64_t first, unsigned rank) const {
  const dim3 grid = job.config.grid, cluster = job.site->cluster;
  return first + rank % cluster.x +
         uint64_t{grid.x} * (rank / cluster.x % cluster.y + uint64_t{grid.y} * (rank / (cluster.x * cluster.y)));
}

Frame Cluster::frame_of(unsigned i, Frame::What what, uint64_t pc, uint32_t mask) const {
  Frame frame;
  frame.what = what;
  frame.launch = session.launches.size() - 1;
  frame.block = number_of(number, rank_of(i));
  frame.warp = index_of(i) / kWarpSize;
  frame.pc = pc;
  frame.mask = mask;
  return frame;
}

Finding* Cluster::place_at(const char* kind, uint64_t pc, uint64_t other_pc, uint64_t block, unsigned thread,
                           bool remark) {
  return session.place(kind, kernel, pc, other_pc, block * kMaxThreads + thread, remark);
}

Finding* Cluster::place(const char* kind, uint64_t pc, uint64_t other_pc, unsigned i, bool remark) {
  const simt::Thread& self = threads[i].self;
  const uint64_t block = number_of(number, rank_of(i));
  Finding* found = place_at(kind, pc, other_pc, block, self.linear, remark);
  if (!found) return nullptr;
  found->block = self.geometry->block_index;
  found->thread = self.thread_index;
  return found;
}

void Cluster::record_failure(unsigned i, const char* kind, Place where, const std::string& message) {
  if (Finding* found = place(kind, where.pc, 0, i)) {
    found->message = message;
    if (where.file) {
      found->file = where.file;
      found->line = where.line;
    }
  }
  constexpr uint64_t kStepsAfterFailure = 1'000'000;  // a lane that now waits for ever is not a second fault
  steps_left = std::min(steps_left, kStepsAfterFailure);
  if (failed && failed_thread_ <= i) return;
  failed = true;
  failed_thread_ = i;
  worker.running = &threads[i];
  fault = {kind, message + "\n  in " + simt::where(worker)};
}

void Cluster::fail(const char* kind, Place where, const std::string& message) {
  const unsigned i = running();
  record_failure(i, kind, where, message);
  threads[i].exited = true;
  suspend();
  __builtin_unreachable();
}

}  // namespace simt::trace
