// races.h: the race detector: which accesses nothing in the kernel orders.
//
// Model. Two accesses to the same byte race if at least one of them writes, at least one of them is plain or has a scope
// without the other's thread, and neither happens before the other. Atomics are not plain, nor are volatile accesses to
// global memory (the memory model of PTX calls both strong). Happens-before is the order of each thread's own
// accesses and of release/acquire pairs, closed under transitivity; it is what the kernel orders, not what happened to
// run first, so the verdict does not depend on the schedule. It is computed as in FastTrack: every access is an epoch
// slot@clock, every thread has a vector clock, every synchronisation object a release clock, and a shadow cell for each
// word keeps its last accesses (vector_clock.h, shadow_memory.h).
//
// What releases and acquires:
//   __syncthreads        all threads of the block           clocks.h: a phase counter in place of vector clocks
//   warp collectives     the lanes that the mask names      clocks.h: a clock of 32 components
//   cluster barrier, wgmma.wait_group of a warp group       clocks.h: full vector clocks
//   mbarriers            arrive releases, wait acquires     mbarriers.h: full vector clocks
//   strong accesses, with __threadfence                     clocks.h: a clock of the grid; below
//   a proxy fence (fence.proxy.async, fence.mbarrier_init)  makes what the thread knows visible to units
//
// Deviations from FastTrack:
//   1. Compressed clocks. A kernel that uses only the barriers of blocks and warps has no O(threads) clocks (clocks.h).
//   2. Asynchronous units. TMA runs beside the threads, so its loads and stores have slots of their own (access.h):
//      only waiting for a load's mbarrier or for a group of stores orders them before a thread's accesses. wgmma reads
//      in its thread's slot, at its issue and once more when the thread waits for it, since it may be late (units.h).
//   3. Two proxies. A unit sees a thread's write only if a proxy fence lies between, so each clock comes twice, and an
//      ordered but unfenced pair is a race of its own kind (`Race::unfenced`).
//   4. Fences. A strong write releases what its thread knew at its last __threadfence, and what threads of its block had
//      fenced before the block's last barrier, and itself: plain accesses after the fence are not part of it. Every
//      strong access acquires the release clock of its address. The acquiring side needs no fence, because the 'last
//      block reduces' pattern is published without one. An address has further release clocks for each block and for
//      the cluster, into which fences and writes of these scopes release.
//   5. Compare-and-swap loops. A plain first read of a location does not race with strong accesses if the same thread
//      then calls atomicCAS on it, which fails if the value was stale. Such a race is held back until that call, or
//      reported when the cluster has ended: as a remark if the other access is an atomicCAS, and another thread's read
//      at the same place of the code began such a loop, which so ended early.
//   6. Plain writes of the same value are a race to the memory model, but the result is that value in any order. They
//      are reported as a remark.
//   7. cp.async before wgmma. PTX asks for a proxy fence between these too (PTX ISA 9.0, wgmma.fence), but CUTLASS's loops
//      have none (sm90_mma_multistage_gmma_ss_warpspecialized.hpp at 7107b05) and are used on Hopper. Where nothing but
//      that fence is missing, the race is reported as a remark (`Race::copied`).
//   8. Sampled readers: three, not all (shadow_memory.h).
//   9. The end of a block. Shared memory ends with its block, so accesses to another block's have to happen before that.
//      A block ends after the last of its threads: what these knew by then is all that is known to have happened.
//
// Limits: one schedule is observed, so a branch that was not taken is not checked; blocks that were not traced have no
// accesses; volatile accesses to shared memory count as plain, since warp-synchronous code that relies on them is wrong
// since Volta; what a thread learns after its fence is released with it, and by a later write of any scope.
//
// Reads of memory that nothing has written are checked here too, in replay order, for fresh memory: shared arrays, and
// global memory that was allocated under the X-ray (regions.h).
//
// References: C. Flanagan and S. N. Freund, FastTrack: Efficient and Precise Dynamic Race Detection, PLDI 2009;
// ThreadSanitizer v3 (compiler-rt, tsan_vector_clock.h, tsan_shadow.h).
#pragma once

#include <map>
#include <set>
#include <tuple>

#include "trace/clocks.h"
#include "trace/kernel_before.h"
#include "trace/shadow_memory.h"

namespace simt::trace {

// The release clocks of strong accesses, by virtual address.
class ReleaseClocks {
 public:
  void begin_cluster();  // forgets those in shared memory, and those of the cluster before
  // Thread i acquires the location's clock and, if it writes, releases into it.
  void update(const Accessor& accessor, Clocks& clocks, unsigned i, const Event& event);

 private:
  using Part = std::tuple<uint64_t, Scope, unsigned>;  // the address, and for which block or, rank 0, for the cluster
  std::unordered_map<uint64_t, GridClock> clocks_;
  std::map<Part, GridClock> narrow_;
};

class Races {
 public:
  Races(Cluster& cluster, Clocks& clocks) : cluster_(cluster), clocks_(clocks) {}
  void begin_cluster();

  // Thread i, or a unit on its behalf, accesses memory. Marks what it writes, and reports a race with an earlier access
  // or a read of memory that nothing has written.
  // `synchronises`: a strong access orders others (an mbarrier does so by clocks of its own).
  void check(const Accessor& accessor, unsigned i, const Event& event, bool synchronises = true) {
    if (cluster_.session.only_sample) return;  // what other blocks would have written is not there
    if (event.region->fresh) check_fresh(i, event);
    if (cluster_.worker.cluster_blocks > 1) note_remote(accessor, i, event);
    if (before_) check_before(accessor, i, event);
    if (event.strong() && synchronises && !beside(accessor.agent)) released_.update(accessor, clocks_, i, event);
    const Race* race = shadow_.access(accessor, event);
    if (event.strong() && event.form == Form::swap) validate(accessor, i, event);
    if (race) judge({*race, accessor.slot, accessor.agent, i, event});
  }
  // Reports the races that no compare-and-swap has excused, and accesses to shared memory of a block that may have ended.
  void end_cluster();

  // The thread, in the block of this rank, for which TMA loads with this slot, or that sends a value: reports name it.
  struct Issuer {
    unsigned rank, thread;
    bool sends;
  };
  void set_issuer(unsigned slot, Issuer issuer) { issuers_[slot] = issuer; }

  // Programmatic dependent launch: the kernel before, which may still run, and what a thread does about it.
  void follow(std::shared_ptr<const KernelBefore> before) { before_ = std::move(before); }
  bool follows() const { return before_ != nullptr; }
  void wait_for_kernel_before() { clocks_.acquire(cluster_.running(), {clocks_.slots().before(), 1}); }
  void let_next_kernel_begin() {
    lets_next_begin_ = true;
    if (before_) overlaps_ |= !clocks_.full(cluster_.running()).generic.knows({clocks_.slots().before(), 1});
  }
  // For the launch after this one: takes all that is remembered. Null if no thread has let it begin.
  std::shared_ptr<const KernelBefore> take_for_next();

 private:
  struct Observed {  // a race, by thread i or a unit on its behalf
    Race race;
    unsigned slot;
    Agent agent;
    unsigned i;
    Event event;
  };
  void judge(const Observed& observed);
  void validate(const Accessor& accessor, unsigned i, const Event& swap);
  bool ends_a_loop(const Observed& observed) const;
  void report(const Observed& observed);
  void check_fresh(unsigned i, const Event& event);
  void check_before(const Accessor& accessor, unsigned i, const Event& event);
  void note_remote(const Accessor& accessor, unsigned i, const Event& event);
  void check_ends();
  bool ends_after(unsigned rank, const Access& access);
  Issuer issuer(const Access& access) const;
  bool is_sent(unsigned slot) const;

  Cluster& cluster_;
  Clocks& clocks_;
  ShadowMemory shadow_;
  std::shared_ptr<const KernelBefore> before_;
  bool lets_next_begin_ = false;
  bool overlaps_ = false;  // it has let the next kernel begin while the one before might still run
  ReleaseClocks released_;
  std::unordered_map<unsigned, Issuer> issuers_;  // by slot
  // The last access, and the thread of another block that made it or issued it, by rank of the block whose shared memory
  // it is, and slot.
  std::map<std::pair<unsigned, unsigned>, std::pair<Access, unsigned>> remote_;
  std::set<uint64_t> first_reads_;  // program counters of plain reads that an atomicCAS of the same thread followed
  std::map<std::pair<unsigned, uint64_t>, std::vector<Observed>> held_;  // by the reader's slot, and 8 bytes of memory
};

}  // namespace simt::trace
