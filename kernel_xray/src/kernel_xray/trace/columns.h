// columns.h: who used the columns of tensor memory last, and whether the next to use them knows that it has finished.
//
// A tcgen05.mma uses its columns until it is complete, in the slot of its thread's unit (units.h): a thread that acquires
// the mbarrier of its tcgen05.commit knows that. tcgen05.ld and tcgen05.st use them as part of their thread.
//
// Limits: of the lanes of a warp, the first stands for all. Products follow each other in the order of their issue,
// whichever threads issue them. A tcgen05.wait that is missing is not found.
#pragma once

#include "threads/tensor_memory.h"
#include "trace/clocks.h"

namespace simt::trace {

class TensorColumns {
 public:
  TensorColumns(Cluster& cluster, const Clocks& clocks) : cluster_(cluster), clocks_(clocks) {}
  void begin_cluster() { columns_.clear(); }
  void end_cluster();  // finds columns that are not freed

  // On the fibre of the calling thread, whose call returns to `site`.
  void access(unsigned first, unsigned count, const char* who, const void* site);
  void end(unsigned first, unsigned count, const void* site);  // they are freed
  // After the product was issued: it uses columns of a block, and writes them if it has an epoch.
  void product(unsigned rank, unsigned first, unsigned count, const ProxyClocks& known, Epoch epoch);

 private:
  struct Use {
    Epoch epoch{0, 0};  // clock 0: there was none
    uint64_t pc = 0;
    unsigned thread = 0;  // of the cluster
  };
  struct Column {
    Use product, by_warp[4];  // by place in the warp group
  };
  bool watched() const { return clocks_.kept() && !cluster_.unwatched; }
  Column& column(unsigned rank, unsigned number);
  void check(const VectorClock& known, const Use& use, const char* who, uint64_t pc, const char* other);

  Cluster& cluster_;
  const Clocks& clocks_;
  std::vector<Column> columns_;  // of all blocks of the cluster; empty until one was used
};

}  // namespace simt::trace
