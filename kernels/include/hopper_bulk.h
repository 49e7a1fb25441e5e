// hopper_bulk.h: Hopper's copy unit without a map: neighbouring bytes, in place of a
// tile. They come from global memory, or go to another block of the cluster.
#pragma once

#include "hopper.h"

namespace hopper {

// Requests a copy of `bytes` bytes to shared memory; to, from and bytes are multiples
// of 16. They count on the barrier when they arrive.
__device__ __forceinline__ void load_bytes(void* to, const void* from, int bytes,
                                           Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
      "%2, [%3];" ::"r"(at),
      "l"(from), "r"(bytes), "r"(bar) : "memory");
}

// Requests a copy of `bytes` bytes of this block's shared memory to that of the block
// of this rank, whose `to` and `barrier` are named by their addresses in this block.
// Both blocks must be running until the bytes have arrived. As for store_tile, every
// thread that wrote to `from` must have called fence_before_store.
__device__ __forceinline__ void send_bytes(int rank, void* to, const void* from,
                                           int bytes, Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(to), source = shared_address(from),
                            bar = shared_address(&barrier);
  HOPPER_ASM(
      "{\n"
      ".reg .b32 there, counter;\n"
      "mapa.shared::cluster.u32 there, %0, %4;\n"
      "mapa.shared::cluster.u32 counter, %3, %4;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], "
      "[%1], %2, [counter];\n"
      "}\n" ::"r"(at),
      "r"(source), "r"(bytes), "r"(bar), "r"(rank) : "memory");
}

// Requests the addition of floats in shared memory to those in global memory, each an
// atomic one; to, from and bytes are multiples of 16. It joins this thread's next group
// of stores (store_commit). As for store_tile, every thread that wrote to `from` must
// have called fence_before_store.
__device__ __forceinline__ void add_floats(void* to, const void* from, int bytes) {
  [[maybe_unused]] uint32_t at = shared_address(from);
  HOPPER_ASM(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::
          "l"(to),
      "r"(at), "r"(bytes) : "memory");
}

// Waits until this thread's stores and additions are complete.
__device__ __forceinline__ void store_complete() {
  HOPPER_ASM("cp.async.bulk.wait_group 0;" :: : "memory");
}

// Orders this thread's accesses so far before its later requests to the copy unit.
__device__ __forceinline__ void fence_async() {
  HOPPER_ASM("fence.proxy.async;" :: : "memory");
}

}  // namespace hopper
