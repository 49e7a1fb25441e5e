// block.cpp: the scheduler of a block or cluster: starting, suspending and ending its threads, and their barriers.
#include "threads/block.h"

#include <cstdio>
#include <cstring>
#include <new>

namespace simt {

namespace {

Geometry host_geometry{{0, 0, 0}, dim3(1), dim3(1)};
Thread host_thread{{0, 0, 0}, &host_geometry, 0};
thread_local std::unique_ptr<Worker> owner;  // frees the worker when its operating-system thread ends

}  // namespace

__thread Thread* current_thread SIMT_TLS = &host_thread;
__thread Worker* current_worker SIMT_TLS = nullptr;

Worker::~Worker() { current_worker = nullptr; }

Worker& Worker::current() {
  if (!current_worker) {
    owner = std::make_unique<Worker>();
    current_worker = owner.get();
  }
  return *current_worker;
}

void Worker::begin_job(const Job& new_job) {
  job = &new_job;
  shared_sites_.clear();
  shared_dynamic_ = new_job.config.shared_bytes;
  shared_used_ = (shared_dynamic_ + 127) & ~size_t{127};
}

void Worker::begin_cluster(const Job& new_job, uint3 index) {
  const dim3 block = new_job.config.block, cluster = new_job.site->cluster;
  block_threads_ = block.x * block.y * block.z;
  cluster_blocks = cluster.x * cluster.y * cluster.z;
  for (unsigned rank = 0; rank < cluster_blocks; ++rank) {
    const uint3 at{index.x + rank % cluster.x, index.y + rank / cluster.x % cluster.y,
                   index.z + rank / (cluster.x * cluster.y)};
    blocks[rank] = {{at, block, new_job.config.grid}, block_threads_, {}};
    if (tensor_memory) tensor_memory[rank].end();
  }
  fault = {};
  signal_kind = nullptr;
  end_requested.store(nullptr, std::memory_order_relaxed);
  blocks_started.fetch_add(1, std::memory_order_relaxed);
}

bool Worker::run_cluster(const Job& new_job, uint3 index) {
  begin_cluster(new_job, index);
  count_ = alive_ = cluster_blocks * block_threads_;
  for (unsigned rank = 0; rank < cluster_blocks; ++rank)
    std::memset(shared_of(rank), 0xff, shared_used_);  // poison: NaN as float, -1 as int
  cluster_barrier_ = grid_barrier_ = {};
  for (BarrierQueue& barrier : warp_groups_) barrier = {};
  started_ = active_count_ = 0;
  ready_ = {};
  for (unsigned w = 0; w * kWarpSize < count_; ++w) {
    unsigned lanes = count_ - w * kWarpSize;
    warps_[w] = {lanes >= kWarpSize ? kFullMask : (1u << lanes) - 1, 0};
  }
  free_stacks_.clear();
  fresh_stack_ = 0;
  range_ = nullptr;
  return run_fibres();
}

bool Worker::run_fibres() {
  Thread* outside = current_thread;
  run_next(scheduler);
  in_fibre.store(false);
  if (signal_kind) fault = {signal_kind, describe_signal(*this)};
  for (unsigned rank = 0; tensor_memory && rank < cluster_blocks && fault.kind.empty(); ++rank)
    if (!tensor_memory[rank].parts.empty()) fault = {"tensor-memory", not_freed(tensor_memory[rank].parts[0])};
  if (!fault.kind.empty()) fault.message += "\n  in " + where(*this);
  current_thread = outside;
  running = nullptr;
  return fault.kind.empty();
}

unsigned Worker::take_stack() {
  if (free_stacks_.empty()) return fresh_stack_++;
  const unsigned stack = free_stacks_.back();
  free_stacks_.pop_back();
  return stack;
}

void Worker::start_fibre(Context& from) {
  Context fresh;
  const unsigned stack = take_stack();
  threads_[started_].stack = stack;
  make_context(fresh, stacks.open(stack), stacks.top(stack), &Worker::fibre_main);
  switch_context(from, fresh);
}

void Worker::fibre_main() {
  Worker& worker = *current_worker;
  worker.in_fibre.store(true, std::memory_order_release);  // a plain move, where the default would be a fence
  worker.run_threads();
}

// A thread that exits hands the fibre's stack to the next thread that has not started.
void Worker::run_threads() {
  unsigned stack = threads_[started_].stack;
  FaultRecord thrown = caught([&] {
    while (started_ < count_) {
      FibreThread& first = threads_[started_];
      first.stack = stack;
      Range range = start(first);
      if (range.end) range_ = &range;
      if (job->site->traced)  // outside an X-ray; its code runs a single thread
        range.run([&] { job->run(job->closure, range); });
      else
        job->run(job->closure, range);
      if (range_) {
        range_ = nullptr;
        exit_range(index_of(first), started_ = place_of(first) + 1);
      } else {
        exit_thread(*running);
      }
      if (started_ == count_ || ready_.head) break;
    }
  });
  if (!thrown.kind.empty()) abandon(std::move(thrown));
  free_stacks_.push_back(running->stack);
  retire();
}

// Starts the thread, and with it a range if no thread waits.
Range Worker::start(FibreThread& thread) {
  const unsigned rank = cluster_blocks == 1 ? 0 : index_of(thread) / block_threads_;
  thread.block = &blocks[rank];
  const Geometry& geometry = thread.block->geometry;
  const dim3 block = geometry.block_dim;
  const unsigned i = index_of(thread) - rank * block_threads_;
  const uint3 index = i < block.x ? uint3{i, 0, 0} : index_in(i, block);
  thread.self = {index, &geometry, i};
  thread.waiting = FibreThread::Waiting::no;
  thread.exited = false;
  thread.arrived = 0;
  thread.next = nullptr;
  running = &thread;
  current_thread = &thread.self;
  const bool none_waits = alive_ == count_ - started_++;
  return {&thread.self, block, none_waits ? block_threads_ : 0};
}

void Worker::end_range() {
  range_->end = 0;
  range_ = nullptr;
  FibreThread& first = *running;
  const unsigned place = place_of(first);
  if (place == index_of(first)) return;
  threads_[place] = first;
  exit_range(index_of(first), place);
  started_ = place + 1;
  running = &threads_[place];
  current_thread = &running->self;
}

void Worker::exit_range(unsigned first, unsigned behind) {
  const unsigned exited = behind - first;
  threads_[first].block->alive -= exited;
  alive_ -= exited;
  if (alive_ == 0) return;  // the cluster has ended
  for (unsigned i = first; i < behind; ++i) {
    threads_[i].exited = true;
    warps_[i / kWarpSize].alive &= ~(1u << i % kWarpSize);
  }
}

void Worker::exit_thread(FibreThread& thread) {
  thread.exited = true;
  Block& block = *thread.block;
  --block.alive;
  --alive_;
  const unsigned warp = warp_of(thread);
  warps_[warp].alive &= ~(1u << (thread.self.linear % kWarpSize));
  if (warps_[warp].waiting) recheck_collectives(warp);  // collectives do not wait for exited lanes
  if (block.alive && block.barrier.count == block.alive) release(block.barrier);
  if (thread.arrived == cluster_barrier_.phase + 1) --cluster_barrier_.count;
  if (alive_ && cluster_barrier_.count == alive_) release(cluster_barrier_);
}

void Worker::retire() {
  Context forgotten;
  run_next(forgotten);
  __builtin_unreachable();
}

void Worker::exit_running() {
  leave_range();
  exit_thread(*running);
  free_stacks_.push_back(running->stack);
  retire();
}

// Switches to a ready thread, else to one that has not started, else ends the block or suspends it.
void Worker::run_next(Context& from) {
  for (;;) {
    if (FibreThread* thread = take_ready()) {
      if (&thread->context == &from) return;  // the thread that waited is the next to run
      switch_context(from, thread->context);
      return;
    }
    if (started_ < count_) return start_fibre(from);
    if (alive_ == grid_barrier_.count) {  // every thread has exited or waits for the other blocks of the grid
      in_fibre.store(false);
      return switch_context(from, scheduler);
    }
    if (!resolve_active()) abandon({"deadlock", describe_deadlock()});
  }
}

void Worker::make_ready(FibreThread& thread) {
  thread.waiting = FibreThread::Waiting::no;
  thread.next = nullptr;
  ready_.append(&thread, &thread);
}

void Worker::yield() {
  leave_range();
  make_ready(*running);
  FibreThread& me = *running;
  if (started_ == count_) return suspend();
  start_fibre(me.context);  // threads that have not started run first, or a spinning thread would starve them
  running = &me;
  current_thread = &me.self;
}

void Worker::release(BarrierQueue& barrier) {
  for (FibreThread* t = barrier.head; t; t = t->next) t->waiting = FibreThread::Waiting::no;
  if (barrier.head) ready_.append(barrier.head, barrier.tail);
  barrier.open();
}

int Worker::barrier(Vote vote, int predicate) {
  leave_range();
  Block& block = *running->block;
  wait_at(block.barrier, predicate, block.alive);
  return block.barrier.answer_to(vote);  // valid until all threads reach the next barrier
}

void Worker::cluster_arrive() {
  leave_range();
  const unsigned phase = cluster_barrier_.phase + 1;
  if (running->arrived == phase) return;
  running->arrived = phase;
  if (++cluster_barrier_.count == alive_) release(cluster_barrier_);
}

void Worker::cluster_barrier() {
  leave_range();
  const unsigned arrived = std::exchange(running->arrived, 0);
  if (arrived && arrived <= cluster_barrier_.phase) return;  // it has opened since
  if (arrived) --cluster_barrier_.count;                     // wait_at counts it again
  wait_at(cluster_barrier_, 0, alive_);
}

void Worker::warp_group_barrier() {
  const unsigned groups = block_threads_ / kWarpGroup, group = running->self.linear / kWarpGroup;
  if (group == groups) abandon({"divergent-barrier", no_warp_group(block_threads_)});
  leave_range();
  wait_at(warp_groups_[cluster_rank() * groups + group], 0, kWarpGroup);
}

int Worker::named_barrier(unsigned id, unsigned threads, Vote vote, int predicate) {
  leave_range();
  BarrierQueue& barrier = running->block->named[id];
  wait_at(barrier, predicate, threads);
  return barrier.answer_to(vote);  // of this round: threads of the next one run after this one
}

void Worker::named_arrive(unsigned id, unsigned threads) {
  leave_range();
  BarrierQueue& barrier = running->block->named[id];
  if (++barrier.count == threads) release(barrier);
}

void* Worker::shared_static(const SharedSite* site, size_t bytes, size_t alignment) {
  for (const auto& [known, place] : shared_sites_)
    if (known == site) return shared_of(cluster_rank()) + place;
  if (alignment < 16) alignment = 16;
  const size_t offset = (shared_used_ + alignment - 1) & ~(alignment - 1);
  const size_t dynamic = (shared_dynamic_ + 127) & ~size_t{127};
  if (offset + bytes - dynamic > kStaticSharedLimit || offset + bytes > kSharedLimit)
    abandon({"shared-memory", "the kernel declares " + std::to_string(offset + bytes - dynamic) +
                                  " bytes of static shared memory (with " + std::to_string(shared_dynamic_) +
                                  " dynamic); the limit is 49152 static and 232448 in all"});
  for (unsigned rank = 0; rank < cluster_blocks; ++rank) std::memset(shared_of(rank) + offset, 0xff, bytes);
  shared_used_ = offset + bytes;
  shared_sites_.push_back({site, offset});
  return shared_of(cluster_rank()) + offset;
}

void Worker::abandon(FaultRecord record) {
  in_fibre.store(false);
  fault = std::move(record);
  jump_context(scheduler);
}

void Worker::abandon_in_handler(const char* kind, const void* address) {
  in_fibre.store(false);
  signal_kind = kind;
  signal_address = address;
  jump_context(scheduler);
}

std::string where(const Worker& worker) {
  char text[512];
  const uint3 b = (worker.running ? *worker.running->self.geometry : worker.blocks[0].geometry).block_index;
  const uint3 t = worker.running ? worker.running->self.thread_index : uint3{0, 0, 0};
  std::snprintf(text, sizeof text, "kernel '%s', block (%u, %u, %u), thread (%u, %u, %u), launched at %s:%d",
                worker.job->site->kernel, b.x, b.y, b.z, t.x, t.y, t.z, worker.job->site->file, worker.job->site->line);
  return text;
}

}  // namespace simt
