// hopper_bulk.h: Hopper's copy unit without a map: neighbouring bytes, in place of a tile.
//
// In the simulator the copy is complete when the function returns; an X-ray finds a missing wait, as for tiles.
#pragma once

#include "hopper.h"

namespace hopper {

#ifndef __SIMT__

// Requests a copy of `bytes` bytes to shared memory; to, from and bytes are multiples of 16. They count on the barrier when they arrive.
__device__ inline void load_bytes(void* to, const void* from, int bytes, Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at),
             "l"(from), "r"(bytes), "r"(bar) : "memory");
}

#else

__device__ __forceinline__ void load_bytes(void* to, const void* from, int bytes, Barrier& barrier) {
  if (uintptr_t(to) % 16 || uintptr_t(from) % 16 || bytes % 16)
    simt::fault("misaligned", "load_bytes copies a multiple of 16 bytes, from and to multiples of 16");
  simt::async_reads(from, bytes);
  simt::async_writes(to, bytes);
  simt::async_load(&barrier, bytes, simt::Copy::own);
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace hopper
