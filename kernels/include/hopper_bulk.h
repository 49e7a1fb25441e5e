// hopper_bulk.h: Hopper's copy unit without a map: a piece of neighbouring bytes, in place of a tile.
#pragma once

#include "hopper.h"

namespace hopper {

#ifndef __SIMT__

// Requests a copy of `bytes` bytes, all three multiples of 16. They count on the barrier when they arrive.
__device__ inline void load_bytes(void* to, const void* from, int bytes, Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at),
             "l"(from), "r"(bytes), "r"(bar) : "memory");
}

// Requests to[i] += from[i] for `bytes` bytes of floats, from shared memory to global memory.
__device__ inline void add_floats(float* to, const float* from, int bytes) {
  [[maybe_unused]] uint32_t at = shared_address(from);
  HOPPER_ASM("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(at), "r"(bytes)
             : "memory");
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
