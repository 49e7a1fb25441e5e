// device_side.cpp: where a traced kernel's calls enter the tracer (trace.h, checks.h).
#include "trace/traced_block.h"

namespace simt {
namespace trace {

namespace {

// For calls that may only be handled after the thread's earlier accesses: suspends it until its record was replayed,
// then silences the hooks.
class Turn {
 public:
  explicit Turn(const void* site) {
    this_block->clocks.expand();
    this_block->cluster.suspend(FibreThread::Waiting::turn, site);
    silence_.begin();
  }

 private:
  Silence silence_;
};

}  // namespace

bool in_traced_block() { return this_block != nullptr && in_kernel(); }
void stop_lane() { this_block->cluster.suspend(); }
void yield() { this_block->cluster.suspend(); }
void lane_fault(const char* kind, Place where, const std::string& message) {
  this_block->outcome.fail(kind, where, message);
}
unsigned cluster_rank() { return this_block->cluster.rank_of(this_block->cluster.running()); }
void* shared_static(const SharedSite* site, size_t bytes, size_t alignment) {
  const Silence silence;
  return this_block->shared.variable(site, bytes, alignment);
}

int barrier(Vote vote, int predicate, const void* site) {
  const Silence silence;
  return this_block->barriers.block(vote, predicate, site);
}
void cluster_barrier(const void* site) {
  const Silence silence;
  this_block->barriers.cluster(site);
}
void warp_group_barrier(const void* site) {
  const Silence silence;
  this_block->barriers.warp_group(site);
}
uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site) {
  const Silence silence;
  return this_block->barriers.collective(what, mask, value, operand, site);
}
unsigned active(const void* site) {
  const Silence silence;
  return this_block->barriers.active(site);
}

void mbarrier_init(void* barrier, const void* site) {
  const Turn turn(site);
  this_block->mbarriers.init(barrier);
}
void mbarrier_arrive(void* barrier, int bytes, const void* site) {
  const Turn turn(site);
  this_block->mbarriers.arrive(barrier, bytes);
}
void mbarrier_wait(void* barrier, unsigned parity, const void* site) {
  for (;;) {
    const Turn turn(site);
    if (this_block->mbarriers.try_wait(barrier, parity)) return;
    this_block->mbarriers.wait(barrier, parity, site);
  }
}

void async_piece(Piece piece) {
  const Silence silence;
  this_block->units.add_piece(piece);
}
void async_zeros(size_t bytes) {
  const Silence silence;
  this_block->units.add_zeros(bytes);
}
void async_load(void* barrier, int bytes, Copy copy, const void* site) {
  const Turn turn(site);
  this_block->units.load(barrier, bytes, copy);
}
void async_store(const void* site) {
  const Turn turn(site);
  this_block->units.store();
}
void async_product(const void* site) {
  const Turn turn(site);
  this_block->units.product();
}
void async_commit(Unit unit) {
  const Silence silence;
  this_block->units.commit(unit);
}
void async_wait(Unit unit, unsigned pending, const void* site) {
  const Turn turn(site);
  this_block->units.wait(unit, pending);
}
void async_fence(const void* site) {
  const Turn turn(site);
  this_block->units.fence();
}

}  // namespace trace
}  // namespace simt
