// work.h: how the threads of a launch share out its accesses to global memory, and which thread wrote which byte.
//
// A grid-stride loop, one thread that does everything, and one thread per element cost the same requests; what each
// thread does tells them apart. Only threads of traced blocks are counted. A tile that TMA loads is one load of the thread
// that requests it; a tile that it stores is not counted.
#pragma once

#include <cstring>

#include "trace/cluster.h"
#include "trace/footprint.h"

namespace simt::trace {

class Work {
 public:
  Work(const Cluster& cluster, LaunchInfo& info) : footprint(info), cluster_(cluster), info_(info) {}

  void begin_cluster() {
    std::fill_n(loads_.begin(), cluster_.count, 0);
    std::fill_n(stores_.begin(), cluster_.count, 0);
    std::memset(products_, 0, sizeof products_);
  }
  void add_products(unsigned rank, TensorType type, uint64_t multiply_adds) {
    products_[rank][unsigned(type)] += multiply_adds;
  }
  void add_special() { ++info_.special; }
  void add_tiles(unsigned i, uint32_t tiles) { loads_[i] += tiles; }  // that thread i has had loaded
  void end_cluster();  // adds what the cluster's threads did to the launch
  // A request by lanes of the warp whose first thread is `first`.
  void add(unsigned first, const Request& request);

  Footprint footprint;

 private:
  const Cluster& cluster_;
  LaunchInfo& info_;
  void add_updates(const Request& request);

  uint64_t products_[kMaxClusterBlocks][kTensorTypes];  // of the cluster's blocks
  std::unordered_map<uint64_t, uint64_t> updates_;      // by word of global memory
  // Of each thread: its accesses to global memory; an atomic update is a store.
  std::vector<uint32_t> loads_ = std::vector<uint32_t>(kMaxClusterThreads), stores_ = loads_;
};

}  // namespace simt::trace
