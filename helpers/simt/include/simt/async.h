// async.h: barriers that count arrivals and bytes (mbarrier), and units that read and write for the threads that ask
// them to: the one that copies tiles (TMA), and tensor cores that take their factors from shared memory (wgmma).
//
// Whoever calls these functions does a unit's work itself, at once; nothing is ever under way. What the functions tell
// is for the traced mode: what a GPU may still be doing, and who has waited for it.
#pragma once

#include "core.h"
#include "tensor_core.h"  // SIMT_NOT_TRACED

namespace simt {

// An mbarrier: 64 bits in the shared memory of this block, or of another one of the cluster. A phase is complete when
// `arrivals` threads have arrived and all the bytes that they said would come have come.
SIMT_API void mbarrier_init(void* barrier, unsigned arrivals);
SIMT_API void mbarrier_arrive(void* barrier, int bytes);      // one arrival, and so many bytes more to come
SIMT_API void mbarrier_wait(void* barrier, unsigned parity);  // until the phase of this parity is complete

// A unit's work for the calling thread: first the pieces of memory that it reads and writes, at multiples of 16 bytes,
// then which unit it is. It reads and writes when that function has returned.
SIMT_API void async_reads(const void* p, size_t bytes);
SIMT_API void async_writes(void* p, size_t bytes);
SIMT_API void async_zeros(size_t bytes);  // that it gets in place of what it would read
// Into shared memory; so many of its bytes arrive at the barrier. A tile is for the thread's own block; or it is read for
// several, and this is the first of them or a further one.
enum class Copy { own, first, further };
SIMT_API void async_load(void* barrier, int bytes, Copy copy);
SIMT_API void async_store();    // from shared memory
SIMT_API void async_product();  // reads shared memory only

// Groups of the calling thread's stores or products, as one waits for them.
enum class Unit { store, product };
SIMT_API void async_commit(Unit unit);                  // what was asked for since the last one is a group
SIMT_API void async_wait(Unit unit, unsigned pending);  // for all groups but the latest `pending`

SIMT_API void async_fence();  // what the thread has written, or knows to be written, is there for units too

}  // namespace simt
