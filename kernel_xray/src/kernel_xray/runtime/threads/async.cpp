// async.cpp: mbarriers and asynchronous units (async.h). The threads of a cluster share one operating-system thread, so
// a barrier's state needs no atomics.
#include "../../include/simt/async.h"

#include "threads/mbarrier.h"
#include "threads/block.h"
#include "trace/trace.h"
#include "trace/traced_block.h"

namespace simt {

bool count(MBarrier& barrier, unsigned arrivals, int bytes) {
  if (barrier.pending < arrivals) return false;
  barrier.pending -= arrivals;
  barrier.bytes += bytes;
  if (barrier.pending == 0 && barrier.bytes == 0) {
    barrier.pending = barrier.arrivals;
    ++barrier.phase;
  }
  return true;
}

namespace {

MBarrier& at(void* barrier) { return *static_cast<MBarrier*>(barrier); }

void inside_kernel(const char* what) {
  if (!in_kernel()) throw Fault("host-call", std::string(what) + " was called outside a kernel");
}

}  // namespace

void mbarrier_init(void* barrier, unsigned arrivals) {
  inside_kernel("an mbarrier's init");
  if (arrivals < 1 || arrivals > kMaxArrivals) fault("barrier", "the simulator's mbarriers take 1 to 1024 arrivals");
  if (trace::in_traced_block()) trace::OrderedCall(__builtin_return_address(0))->mbarriers.init(barrier);
  at(barrier) = {0, arrivals & 2047, arrivals & 2047, 0};
}

void mbarrier_arrive(void* barrier, int bytes) {
  inside_kernel("an mbarrier's arrive");
  if (trace::in_traced_block())
    return trace::OrderedCall(__builtin_return_address(0))->mbarriers.arrive(barrier, bytes);
  if (!count(at(barrier), 1, bytes)) fault("barrier", kTooManyArrivals);
}

void mbarrier_expect(void* barrier, int bytes) {
  inside_kernel("an mbarrier's expected bytes");
  if (trace::in_traced_block())
    return trace::OrderedCall(__builtin_return_address(0))->mbarriers.expect(barrier, bytes);
  count(at(barrier), 0, bytes);
}

void mbarrier_drop(void* barrier) {
  inside_kernel("an mbarrier's arrival for the last time");
  if (at(barrier).arrivals < 2) fault("barrier", "an mbarrier expects one arrival or more");
  if (trace::in_traced_block()) trace::OrderedCall(__builtin_return_address(0))->mbarriers.expect(barrier, 0);
  --at(barrier).arrivals;
}

void mbarrier_wait(void* barrier, unsigned parity) {
  inside_kernel("an mbarrier's wait");
  if (trace::in_traced_block()) {
    const void* site = __builtin_return_address(0);
    while (!trace::OrderedCall(site)->mbarriers.wait(barrier, parity, site)) continue;
    return;
  }
  if (parity > 1) fault("barrier", kNoParity);
  while (!at(barrier).passed(parity)) current_worker->yield();
}

bool mbarrier_test(void* barrier, unsigned parity) {
  inside_kernel("an mbarrier's test");
  const uintptr_t phase = reinterpret_cast<uintptr_t>(barrier) + parity % 2;
  const bool again = current_thread->asked == phase;
  current_thread->asked = 0;
  if (again || at(barrier).passed(parity)) return mbarrier_try(barrier, parity);
  current_thread->asked = phase;
  return false;
}

bool mbarrier_try(void* barrier, unsigned parity) {
  if (trace::in_traced_block()) {
    mbarrier_wait(barrier, parity);
    return true;
  }
  inside_kernel("an mbarrier's test");
  if (!at(barrier).passed(parity)) current_worker->yield();
  return at(barrier).passed(parity);
}

unsigned mbarrier_phase(const void* barrier) { return static_cast<const MBarrier*>(barrier)->phase; }

void async_reads(const void* p, size_t bytes) {
  if (trace::in_traced_block()) trace::Call()->units.add_piece({reinterpret_cast<uint64_t>(p), bytes, false});
}
void async_writes(void* p, size_t bytes) {
  if (trace::in_traced_block()) trace::Call()->units.add_piece({reinterpret_cast<uint64_t>(p), bytes, true});
}
void async_zeros(size_t bytes) {
  if (bytes && trace::in_traced_block()) trace::Call()->units.add_zeros(bytes);
}

void async_load(void* barrier, int bytes, Copy copy) {
  inside_kernel("a load of a tile");
  if (trace::in_traced_block())
    return trace::OrderedCall(__builtin_return_address(0))->units.load(barrier, bytes, copy);
  count(at(barrier), 0, -bytes);
}
void async_send(void* barrier, int bytes) {
  inside_kernel("a send to another block");
  if (trace::in_traced_block()) return trace::OrderedCall(__builtin_return_address(0))->units.send(barrier, bytes);
  count(at(barrier), 0, -bytes);
}
void async_store() {
  if (trace::in_traced_block()) trace::OrderedCall(__builtin_return_address(0))->units.store();
}
void async_product() {
  if (trace::in_traced_block()) trace::OrderedCall(__builtin_return_address(0))->units.product();
}
void async_fence_registers() {
  if (trace::in_traced_block()) trace::Call()->units.fence_registers();
}
void async_commit(Unit unit) {
  if (trace::in_traced_block()) trace::Call()->units.commit(unit);
}
void async_wait(Unit unit, unsigned pending) {
  if (trace::in_traced_block()) trace::OrderedCall(__builtin_return_address(0))->units.wait(unit, pending);
}
void tensor_commit(void* barrier) {
  inside_kernel("tcgen05.commit");
  if (trace::in_traced_block()) return trace::OrderedCall(__builtin_return_address(0))->units.commit_products(barrier);
  current_worker->yield();  // a product takes long enough for others to get to their wait for the one before
  if (!count(at(barrier), 1, 0)) fault("barrier", kTooManyArrivals);
}
void async_fence() {
  if (trace::in_traced_block()) trace::OrderedCall(__builtin_return_address(0))->units.fence();
}

}  // namespace simt
