// trace.h: the traced mode, which sees every access that a kernel makes to memory. What the rest of the run-time
// library calls.
//
// A traced kernel is compiled with -fsanitize=thread -fsanitize-coverage=trace-pc. The hooks that the compiler calls
// check each address before the access happens and append it to the lane's record. When the lanes of a warp have all
// stopped, their records are replayed in step: costs are counted, and races and uninitialised reads found. A race is
// what the kernel does not order, whatever happened to run first, so the verdict does not depend on the schedule, which
// is drawn from a seed.
//
// The files, each building on those before it:
//   lane, regions, session, metrics   events; what an address belongs to; what is counted and found; what requests cost
//   checks, hooks                     what is checked before an access happens; what the compiler calls
//   cluster, outcome                  the threads that run together; their findings and failures
//   shared_arrays, uninitialised      shared memory with red zones; reads of memory that nothing has written
//   vector_clock, slots, access       the terms of race detection
//   clocks, shadow_memory, races      what threads know; the last accesses; the detector
//   replay                            lanes in step
//   barriers, mbarriers, units        how threads wait: for each other, for TMA and wgmma
//   deadlock, scheduler               who runs next; a report if no thread can
//   traced_block, device_side         connects all of that; where a kernel's calls come in
//   traced_launch                     which blocks of a grid are traced
#pragma once

#include "../../include/simt/async.h"
#include "trace/session.h"

namespace simt {
namespace trace {

bool launch(const Job& job, FaultRecord& fault);  // runs the grid on the calling thread; false after a fault

// The device side in a traced block; core.h's functions come here if `in_traced_block()`. `site` is a return address in
// the kernel.
bool in_traced_block();
int barrier(Vote vote, int predicate, const void* site);
uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site);
unsigned active(const void* site);
void yield();
void* shared_static(const SharedSite* site, size_t bytes, size_t alignment);
void cluster_barrier(const void* site);
void warp_group_barrier(const void* site);
unsigned cluster_rank();

// The same for async.h.
struct Piece {  // of memory, that a unit reads or writes
  uint64_t address;
  size_t bytes;
  bool write;
};
void mbarrier_init(void* barrier, const void* site);  // the caller writes the state
void mbarrier_arrive(void* barrier, int bytes, const void* site);
void mbarrier_wait(void* barrier, unsigned parity, const void* site);
void async_piece(Piece piece);
void async_zeros(size_t bytes);
void async_load(void* barrier, int bytes, Copy copy, const void* site);
void async_store(const void* site);
void async_product(const void* site);
void async_commit(Unit unit);
void async_wait(Unit unit, unsigned pending, const void* site);
void async_fence(const void* site);

}  // namespace trace
}  // namespace simt
