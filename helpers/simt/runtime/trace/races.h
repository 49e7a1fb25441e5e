// races.h: the race detector: which accesses nothing in the kernel orders.
//
// Model. Two accesses to the same byte race if at least one of them is a plain write, or one is a plain read and the
// other an atomic update, and neither happens before the other. Happens-before is the order of each thread's own
// accesses and of release/acquire pairs, closed under transitivity; it is what the kernel orders, not what happened to
// run first, so the verdict does not depend on the schedule. It is computed as in FastTrack: every access is an epoch
// slot@clock, every thread has a vector clock, every synchronisation object a release clock, and a shadow cell for each
// word keeps its last accesses (vector_clock.h, shadow_memory.h).
//
// What releases and acquires:
//   __syncthreads        all threads of the block           clocks.h: a phase counter in place of vector clocks
//   warp collectives     the lanes that the mask names      clocks.h: a clock of 32 components
//   cluster barrier, wgmma_wait of a warp group             clocks.h: full vector clocks
//   mbarriers            arrive releases, wait acquires     mbarriers.h: full vector clocks
//   atomics on global or shared memory, between clusters    below
//   a proxy fence (fence_before_store, fence_init)          makes what the thread knows visible to units
//
// Deviations from FastTrack:
//   1. Compressed clocks. A kernel that uses only the barriers of blocks and warps has no O(threads) clocks (clocks.h).
//   2. Asynchronous units. TMA runs beside the threads, so its loads and stores have slots of their own (access.h):
//      only waiting for a load's mbarrier or for a group of stores orders them before a thread's accesses. wgmma reads
//      in its thread's slot, at its issue and once more when the thread waits for it, since it may be late (units.h).
//   3. Two proxies. A unit sees a thread's write only if a proxy fence lies between, so each clock comes twice, and an
//      ordered but unfenced pair is a race of its own kind (`Race::unfenced`).
//   4. Atomics. An atomic access acquires the release clock of its address. It releases only if its thread has executed
//      a __threadfence after its last plain write to global memory. The acquiring side needs no fence, because the
//      'last block reduces' pattern is published without one. Between threads of one cluster atomics order nothing.
//   5. Sampled readers: three, not all (shadow_memory.h).
//
// Limits: one schedule is observed, so a branch that was not taken is not checked; blocks that were not traced have no
// accesses; one release epoch is kept per block and phase (GridClock); locks and flags built from plain atomic loads
// and stores count as atomic updates; memory scopes are not modelled.
//
// Reads of memory that nothing has written are checked here too, in replay order, for fresh memory: shared arrays, and
// global memory that was allocated under the X-ray. An access is at fault if it reads a byte that no traced kernel has
// written and that still holds the pattern which it was filled with. Limits: code that is not traced may have written
// that very pattern; writes by kernels that are not traced (blocks outside the sample among them) are known only by the
// pattern being gone.
//
// References: C. Flanagan and S. N. Freund, FastTrack: Efficient and Precise Dynamic Race Detection, PLDI 2009;
// ThreadSanitizer v3 (compiler-rt, tsan_vector_clock.h, tsan_shadow.h).
#pragma once

#include "trace/clocks.h"
#include "trace/shadow_memory.h"

namespace simt::trace {

// The release clocks of atomic variables, by virtual address. They order accesses of different clusters.
class ReleaseClocks {
 public:
  void forget_shared();  // those in shared memory, whose lifetime ends with the cluster
  // An atomic update: `accessor` acquires the location's clock and, if it has fenced, releases into it.
  void update(const Accessor& accessor, uint64_t address, bool fenced, unsigned shift);

 private:
  std::unordered_map<uint64_t, GridClock> clocks_;
};

class Races {
 public:
  Races(Cluster& cluster, const Clocks& clocks) : cluster_(cluster), clocks_(clocks) {}
  void begin_cluster();

  // Thread i, or a unit on its behalf, accesses memory. Marks what it writes, and reports a race with an earlier access
  // or a read of memory that nothing has written.
  void check(const Accessor& accessor, unsigned i, const Event& event) {
    if (event.region->fresh) check_fresh(i, event);
    if (event.kind == Kind::atomic && accessor.agent != Agent::tma)
      released_.update(accessor, event.address, event.fenced, clocks_.slots().shift());
    const Race* race = shadow_.access(accessor, event.address, event.size, event.kind, event.pc());
    if (race) report(*race, accessor, i, event);
  }

  // The thread (in its block) for which TMA loads with this slot: reports name it.
  void set_issuer(unsigned slot, unsigned thread) { issuers_[slot] = thread; }

 private:
  void report(const Race& race, const Accessor& accessor, unsigned i, const Event& event);
  void check_fresh(unsigned i, const Event& event);
  unsigned issuer(const Access& access) const;

  Cluster& cluster_;
  const Clocks& clocks_;
  ShadowMemory shadow_;
  ReleaseClocks released_;
  std::unordered_map<unsigned, unsigned> issuers_;  // by slot
};

}  // namespace simt::trace
