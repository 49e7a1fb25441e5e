// cooperative.cpp: parking clusters at the barrier of their grid, and the rounds of a cooperative grid.
#include "threads/cooperative.h"

#include <cstring>

#include "threads/watch.h"

namespace simt {

namespace {
constexpr size_t kParkedLimit = size_t{2} << 30;  // bytes
}

// ---------------------------------------------------------------------------------------------------------------
// One cluster

void Worker::park(Parked& to) {
  to.threads.assign(threads_.get(), threads_.get() + count_);
  to.warps.assign(warps_, warps_ + (count_ + kWarpSize - 1) / kWarpSize);
  to.blocks.assign(blocks, blocks + cluster_blocks);
  to.barrier = grid_barrier_;
  to.cluster_barrier = cluster_barrier_;
  to.alive = alive_;
  to.free_stacks = free_stacks_;
  to.stacks.clear();
  for (const FibreThread& t : to.threads)
    if (!t.exited) to.stacks.insert(to.stacks.end(), low_end(t.context), static_cast<char*>(stacks.top(t.stack)));
  to.shared.clear();
  for (unsigned rank = 0; rank < cluster_blocks; ++rank)
    to.shared.insert(to.shared.end(), shared_of(rank), shared_of(rank) + shared_used_);
}

// Every pointer into this state is still right, for all of it returns to where it was.
void Worker::unpark(const Parked& from) {
  cluster_blocks = static_cast<unsigned>(from.blocks.size());
  count_ = started_ = static_cast<unsigned>(from.threads.size());
  block_threads_ = count_ / cluster_blocks;
  std::copy(from.threads.begin(), from.threads.end(), threads_.get());
  std::copy(from.warps.begin(), from.warps.end(), warps_);
  std::copy(from.blocks.begin(), from.blocks.end(), blocks);
  grid_barrier_ = from.barrier;
  cluster_barrier_ = from.cluster_barrier;
  alive_ = from.alive;
  free_stacks_ = from.free_stacks;
  const char* saved = from.stacks.data();
  for (const FibreThread& t : from.threads) {
    if (t.exited) continue;
    char* low = low_end(t.context);
    const size_t bytes = static_cast<size_t>(static_cast<char*>(stacks.top(t.stack)) - low);
    std::memcpy(low, saved, bytes);
    saved += bytes;
  }
  const size_t used = from.shared.size() / cluster_blocks;  // other clusters may have declared more since
  for (unsigned rank = 0; rank < cluster_blocks; ++rank) {
    std::memcpy(shared_of(rank), from.shared.data() + rank * used, used);
    std::memset(shared_of(rank) + used, 0xff, shared_used_ - used);
  }
}

void Worker::grid_barrier() {
  leave_range();
  wait_at(grid_barrier_, 0, ~0u);  // opened by continue_cluster
  in_fibre.store(true);
}

bool Worker::continue_cluster() {
  release(grid_barrier_);
  return run_fibres();
}

// ---------------------------------------------------------------------------------------------------------------
// The grid

void CooperativeGrid::run() {
  Worker& worker = Worker::current();
  const Watched watched(worker);
  worker.begin_job(job_);
  std::vector<Parked> mine;
  while (!stopped_.load()) {
    const uint64_t i = next_.fetch_add(1);
    if (i >= clusters_) break;
    if (!worker.run_cluster(job_, first_block(job_, i))) return stop(worker.fault);
    if (!park(worker, mine)) return;
  }
  for (uint64_t round = 0; !mine.empty() && wait_for_all(round); ++round) {
    std::vector<Parked> waiting;
    waiting.swap(mine);
    for (Parked& cluster : waiting) {
      if (stopped_.load()) return;
      worker.unpark(cluster);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        parked_bytes_ -= cluster.bytes();
      }
      cluster = {};
      if (!worker.continue_cluster()) return stop(worker.fault);
      if (!park(worker, mine)) return;
    }
  }
}

bool CooperativeGrid::park(Worker& worker, std::vector<Parked>& mine) {
  const bool waits = worker.at_grid_barrier();
  if (waits) worker.park(mine.emplace_back());
  FaultRecord fault;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ += !waits;
    if (waits) parked_bytes_ += mine.back().bytes();
    if (parked_bytes_ > kParkedLimit) {
      fault = {"unsupported",
               "not supported by the simulator: a cooperative grid whose threads keep more than 2 GiB of "
               "local variables and shared memory at the grid's barrier; launch fewer blocks"};
    } else if (--missing_ == 0 && ended_ == 0) {
      missing_ = clusters_;
      ++round_;
      opened_.notify_all();
    } else if (missing_ == 0 && ended_ < clusters_) {
      fault = {"deadlock", "deadlock: " + std::to_string(clusters_ - ended_) + " of " + std::to_string(clusters_) +
                               " blocks wait at grid.sync(), and the others have ended without reaching it. Every "
                               "block of the grid has to reach the same call."};
    }
  }
  if (fault.kind.empty()) return true;
  fault.message += std::string("\n  in kernel '") + job_.site->kernel + "', launched at " + job_.site->file + ":" +
                   std::to_string(job_.site->line);
  stop(std::move(fault));
  return false;
}

bool CooperativeGrid::wait_for_all(uint64_t round) {
  std::unique_lock<std::mutex> lock(mutex_);
  opened_.wait(lock, [&] { return round_ > round || stopped_.load(); });
  return !stopped_.load();
}

void CooperativeGrid::stop(FaultRecord fault) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (fault_.kind.empty()) fault_ = std::move(fault);
  stopped_.store(true);
  opened_.notify_all();
}

}  // namespace simt
