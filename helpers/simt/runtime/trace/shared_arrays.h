// shared_arrays.h: the shared memory of a cluster's blocks, with red zones between variables.
//
// Each block has an arena: its dynamic shared memory first, then one array per __shared__ declaration, in the order in
// which threads reach them. Deviation from CUDA: 128 bytes between variables belong to none of them, so that an index
// past an array's end is found. 128 is a multiple of all banks, so a variable's banks do not change.
#pragma once

#include <utility>
#include <vector>

#include "trace/outcome.h"

namespace simt {
namespace trace {

class SharedArrays {
 public:
  SharedArrays(const Cluster& cluster, Regions& regions, Outcome& outcome)
      : cluster_(cluster), regions_(regions), outcome_(outcome) {}
  void begin_cluster();
  void end_cluster();

  // The address of a __shared__ variable in the running thread's block; fails beyond CUDA's limits of 48 and 227 KiB.
  void* variable(const SharedSite* site, size_t bytes, size_t alignment);
  size_t declared() const { return declared_; }  // bytes of static shared memory

 private:
  void add(size_t offset, size_t bytes, const std::string& name);

  const Cluster& cluster_;
  Regions& regions_;
  Outcome& outcome_;
  std::vector<std::pair<const SharedSite*, size_t>> sites_;  // with their offsets
  std::vector<uint64_t> added_;                              // starts of regions
  size_t used_ = 0, declared_ = 0;
};

}  // namespace trace
}  // namespace simt
