// async.h: barriers that count arrivals and bytes (mbarrier), and units that read and write memory on behalf of a
// thread: the copy unit for tiles (TMA), tensor cores that read their factors from shared memory (wgmma), and stores
// into another block's shared memory (st.async).
//
// Unlike on a GPU, nothing but the copies of cp.async is ever in flight: the caller of these functions does the unit's
// work itself, at once. The calls tell the traced mode what a GPU might still be doing, and which threads have waited.
#pragma once

#include "core.h"

namespace simt {

// An mbarrier: 64 bits in the shared memory of this block, or of another block of the cluster. A phase is complete when
// `arrivals` threads have arrived, and all the bytes that they announced.
SIMT_API void mbarrier_init(void* barrier, unsigned arrivals);
SIMT_API void mbarrier_arrive(void* barrier, int bytes);      // one arrival, which announces `bytes` more bytes
SIMT_API void mbarrier_expect(void* barrier, int bytes);      // the bytes without an arrival; negative: they arrive
SIMT_API void mbarrier_drop(void* barrier);                   // the phases after this one expect one arrival less
SIMT_API void mbarrier_wait(void* barrier, unsigned parity);  // until the phase of this parity is complete
// Whether the phase of this parity is complete; lets other threads run if not. In the traced mode it waits instead.
SIMT_API bool mbarrier_try(void* barrier, unsigned parity);
// The same, but a thread that has not just asked for this phase in vain gets its answer at once.
SIMT_API bool mbarrier_test(void* barrier, unsigned parity);
SIMT_API unsigned mbarrier_phase(const void* barrier);  // the number of complete phases, which wraps around

// A unit's work for the calling thread: first the pieces of memory that it reads and writes, at multiples of 16 bytes
// (a value of 8 bytes: of 8), then the unit's function. The caller moves the data after that function has returned.
SIMT_API void async_reads(const void* p, size_t bytes);
SIMT_API void async_writes(void* p, size_t bytes);
SIMT_API void async_zeros(size_t bytes);  // which the unit writes in place of bytes that it would read
// A load into shared memory; `bytes` of it arrive at the barrier. The tile is for the thread's own block only, or it is
// read once for several blocks, and this is the first of them or a further one. Or it is sent from shared memory to the
// block that has the barrier.
enum class Copy { own, first, further, sent };
SIMT_API void async_load(void* barrier, int bytes, Copy copy);
// A store of a value, of 8 or 16 bytes, into the shared memory of the block that has the barrier, where they arrive.
// The phase also tells those who wait for it what this thread has done before.
SIMT_API void async_send(void* barrier, int bytes);
SIMT_API void async_store();    // reads shared memory
SIMT_API void async_product();  // reads shared memory only
// Orders the thread's registers before its products from here on.
SIMT_API void async_fence_registers();

// Groups of the calling thread's stores or products, which it can wait for.
enum class Unit { store, product };
SIMT_API void async_commit(Unit unit);                  // the work since the last commit becomes a group
SIMT_API void async_wait(Unit unit, unsigned pending);  // for all groups but the latest `pending`

// The calling thread's copies (cp.async). What it has written at `to`, at most 16 bytes, is NaN until it has waited for
// the copy's group.
SIMT_API void copy_hide(void* to, size_t bytes);
SIMT_API void copy_commit();                // the copies since the last commit become a group
SIMT_API void copy_wait(unsigned pending);  // for all groups but the latest `pending`

// Makes the thread's writes, and those that happen before them, visible to the units.
SIMT_API void async_fence();

}  // namespace simt
