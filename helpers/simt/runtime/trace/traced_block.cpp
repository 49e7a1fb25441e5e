// traced_block.cpp: begins, runs and ends a cluster.
#include "trace/traced_block.h"

#include <algorithm>

namespace simt {
namespace trace {

__thread TracedBlock* this_block SIMT_TLS = nullptr;

bool TracedBlock::run(uint3 index, uint64_t number) {
  cluster.begin(index, number, &Scheduler::fibre_main);
  outcome.begin_cluster();
  units.begin_cluster();
  clocks.begin_cluster();
  races.begin_cluster();
  mbarriers.begin_cluster();
  shared.begin_cluster();

  this_block = this;
  simt::Thread* const outside = current_thread;
  scheduler.run();
  current_thread = outside;
  cluster.worker.running = nullptr;
  this_block = nullptr;

  shared.end_cluster();
  info_.shared_static = std::max(info_.shared_static, shared.declared());
  return !outcome.failed;
}

}  // namespace trace
}  // namespace simt
