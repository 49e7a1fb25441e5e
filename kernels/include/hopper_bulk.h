// hopper_bulk.h: Hopper's copy unit without a map: neighbouring bytes, in place of a tile. They come
// from global memory, or go to another block of the cluster.
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

// Requests a copy of `bytes` bytes of this block's shared memory to that of the block of this rank, whose `to` and
// `barrier` are named by their addresses in this block. Both blocks must be running until the bytes have arrived. As for
// store_tile, every thread that wrote to `from` must have called fence_before_store.
__device__ inline void send_bytes(int rank, void* to, const void* from, int bytes, Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(to), source = shared_address(from), bar = shared_address(&barrier);
  HOPPER_ASM(
      "{\n"
      ".reg .b32 there, counter;\n"
      "mapa.shared::cluster.u32 there, %0, %4;\n"
      "mapa.shared::cluster.u32 counter, %3, %4;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [%1], %2, [counter];\n"
      "}\n" ::"r"(at),
      "r"(source), "r"(bytes), "r"(bar), "r"(rank) : "memory");
}

#else

// The unit's own accesses. Where std::memcpy is a call, which depends on the compiler and the processor, the X-ray would
// count it as the thread's.
SIMT_NOT_TRACED __attribute__((noinline)) inline void copy_bytes(void* to, const void* from, int bytes) {
  for (int i = 0; i < bytes / 16; ++i) static_cast<uint4*>(to)[i] = static_cast<const uint4*>(from)[i];
}

__device__ __forceinline__ void load_bytes(void* to, const void* from, int bytes, Barrier& barrier) {
  if (uintptr_t(to) % 16 || uintptr_t(from) % 16 || bytes % 16)
    simt::fault("misaligned", "load_bytes copies a multiple of 16 bytes, from and to multiples of 16");
  simt::async_reads(from, bytes);
  simt::async_writes(to, bytes);
  simt::async_load(&barrier, bytes, simt::Copy::own);
  copy_bytes(to, from, bytes);
}

__device__ __forceinline__ void send_bytes(int rank, void* to, const void* from, int bytes, Barrier& barrier) {
  char* there = shared_memory_of(rank) + shared_address(to);
  if (uintptr_t(there) % 16 || uintptr_t(from) % 16 || bytes % 16)
    simt::fault("misaligned", "send_bytes copies a multiple of 16 bytes, from and to multiples of 16");
  simt::async_reads(from, bytes);
  simt::async_writes(there, bytes);
  simt::async_load(&barrier_of(rank, barrier), bytes, simt::Copy::sent);
  copy_bytes(there, from, bytes);
}

#endif

}  // namespace hopper
