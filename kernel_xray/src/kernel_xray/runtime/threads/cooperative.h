// cooperative.h: grids whose blocks wait for each other at the grid's barrier (cudaLaunchCooperativeKernel).
//
// A worker has room for one cluster (usually one block). A cluster of which every thread has exited or waits at the
// grid's barrier is parked: its threads' states, the used parts of their stacks and its shared memory are saved, and
// the worker runs the next cluster. When all clusters have come, each worker brings its own ones back, one after
// another. So a grid may fill the device (221,184 threads) without a stack for each thread.
//
// As on a GPU, threads that have exited are not waited for within their cluster, but a cluster that ends without
// reaching the barrier leaves the others waiting: a deadlock, which is a fault here. The watchdog's time limit counts
// from the last cluster's start to the end of the grid.
#pragma once

#include <condition_variable>
#include <mutex>

#include "threads/block.h"
#include "threads/pool.h"

namespace simt {

struct Parked {  // a cluster that waits at the grid's barrier
  std::vector<FibreThread> threads;
  std::vector<Warp> warps;
  std::vector<Block> blocks;
  BarrierQueue barrier, cluster_barrier;
  unsigned alive;
  std::vector<unsigned> free_stacks;
  std::vector<char> stacks, shared;

  size_t bytes() const { return threads.size() * sizeof(FibreThread) + stacks.size() + shared.size(); }
};

class CooperativeGrid : public Work {
 public:
  CooperativeGrid(const Job& job, uint64_t clusters) : job_(job), clusters_(clusters), missing_(clusters) {}
  void run() override;
  const FaultRecord& fault() const { return fault_; }

 private:
  bool park(Worker& worker, std::vector<Parked>& mine);  // after a stretch of a cluster; false: the grid stops
  bool wait_for_all(uint64_t round);
  void stop(FaultRecord fault);

  const Job& job_;
  const uint64_t clusters_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable opened_;
  uint64_t missing_;  // clusters that have neither reached this round's barrier nor ended
  uint64_t ended_ = 0, round_ = 0;
  size_t parked_bytes_ = 0;
  FaultRecord fault_;
};

}  // namespace simt
