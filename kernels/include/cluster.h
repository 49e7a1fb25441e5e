// cluster.h: the blocks of a cluster, on GPUs of compute capability 9.0 and newer. They
// run at the same time and can write to each other's shared memory. All PTX for kernels
// that need no more of Hopper than this is in this file.
//
//   Cluster::sync()  all threads of all blocks wait for each other. It also waits until
//                    all that they have written has reached the L2 cache, results in
//                    global memory too, so it is slow in a loop that writes results
//   Cluster::send()  writes a value to another block (st.async) and does not wait. The
//                    value's bytes count on the Mailbox of the receiving block, which
//                    waits for as many as it expects
//
// launch_clusters makes the clusters: cudaLaunchAttributeClusterDimension. In the
// simulator a value is there when send returns; an X-ray finds a missing wait as a
// race. It takes what a thread did before a send as known to those who have waited for
// it. PTX promises less: reads are over if their values have been used, in a shuffle
// for example, but nothing tells when other writes are visible.
#pragma once

#include <cooperative_groups.h>

#include <climits>
#include <cstdint>
#include <cstring>

#include "launch.h"

namespace ladder {

// An mbarrier that guards values which other blocks send to this one. It counts their
// bytes; when all that it expects have arrived, its phase is complete and the next
// begins. A phase is named by its parity: 0 first, then 1, 0, ...
struct Mailbox {
  uint64_t word;
};

// The functions but sync: one thread calls init and expect_bytes, each thread that
// reads values calls wait.
//   rank()                            this block's in its cluster
//   init(mailbox, bytes)              expects so many bytes in the first phase; call
//                                     sync() before any send
//   expect_bytes(mailbox, bytes)      the same for the next phase. Values may arrive
//                                     earlier: they count on this phase
//   wait(mailbox, parity)             returns once the phase of this parity is complete
//   send(slot, rank, value, mailbox)  to this address in the block of this rank, which
//                                     must not have ended; slot and mailbox are named
//                                     by their addresses in this block. 8 or 16 bytes,
//                                     aligned

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(__SIMT__)

struct Cluster {
  __device__ __forceinline__ static int rank() {
    return cooperative_groups::this_cluster().block_rank();
  }
  __device__ __forceinline__ static void sync() {
    cooperative_groups::this_cluster().sync();
  }

  __device__ __forceinline__ static void init(Mailbox& mailbox, int bytes) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(mailbox))
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    expect_bytes(mailbox, bytes);
  }
  __device__ __forceinline__ static void expect_bytes(Mailbox& mailbox, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     address(mailbox)),
                 "r"(bytes)
                 : "memory");
  }
  // An acquire for this block, not for the cluster: that would empty the L1 cache each
  // time, and the values are in this block's shared memory. To
  // fence.acquire.sync_restrict::shared::cluster, of newer versions of PTX, it makes no
  // difference in machine code.
  __device__ __forceinline__ static void wait(Mailbox& mailbox, int parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(address(mailbox)),
        "r"(parity)
        : "memory");
  }

  // Addresses in the window of shared memory, of 32 bits: mapa turns those of this
  // block into another's.
  template <typename T>
  __device__ __forceinline__ static void send(T& slot, int rank, const T& value,
                                              Mailbox& mailbox) {
    static_assert(sizeof(T) == 8 || sizeof(T) == 16, "st.async stores 8 or 16 bytes");
    uint64_t words[sizeof(T) / 8];
    memcpy(words, &value, sizeof(T));
    uint32_t to = of_block(address(slot), rank),
             counter = of_block(address(mailbox), rank);
    if constexpr (sizeof(T) == 8) {
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, "
          "[%2];" ::"r"(to),
          "l"(words[0]), "r"(counter)
          : "memory");
    } else {
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], "
          "{%1, %2}, [%3];" ::"r"(to),
          "l"(words[0]), "l"(words[1]), "r"(counter)
          : "memory");
    }
  }

 private:
  template <typename T>
  __device__ __forceinline__ static uint32_t address(const T& shared) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(&shared));
  }
  __device__ __forceinline__ static uint32_t of_block(uint32_t address, int rank) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
  }
};

#else  // no kernel with clusters is launched there

struct Cluster {
  __device__ static int rank() { return 0; }
  __device__ static void sync() { __trap(); }
  __device__ static void init(Mailbox&, int) {}
  __device__ static void expect_bytes(Mailbox&, int) {}
  __device__ static void wait(Mailbox&, int) { __trap(); }
  template <typename T>
  __device__ static void send(T&, int, const T&, Mailbox&) {}
};

#endif

// What each warp of a cluster's blocks has found, for all of them. In a loop there are
// two, in turns: a warp that sends to one again has what all warps sent to the other,
// so all have read this one.
template <typename T, int most>  // warps in the cluster
struct ClusterValues {
  T at[most];
  Mailbox mailbox;

  // Returns when all blocks of the cluster have begun: earlier none may send to
  // another.
  __device__ void begin(int warps) {
    if (threadIdx.x == 0) Cluster::init(mailbox, warps * int(sizeof(T)));
    Cluster::sync();
  }
  // All lanes of a warp have the same value.
  __device__ void send(const T& value, int blocks) {
    int lane = threadIdx.x % 32,
        warp = (Cluster::rank() * blockDim.x + threadIdx.x) / 32;
    if (lane < blocks) Cluster::send(at[warp], lane, value, mailbox);
  }
  // turn: how often all have sent before.
  __device__ void wait(int turn, int warps) {
    Cluster::wait(mailbox, turn % 2);
    if (threadIdx.x == 0) Cluster::expect_bytes(mailbox, warps * int(sizeof(T)));
  }
  __device__ void exchange(const T& value, int blocks) {  // once
    send(value, blocks);
    Cluster::wait(mailbox, 0);
  }
};

// Launches `count` clusters of this shape. Returns false, and launches nothing, if the
// GPU cannot: clusters of more than 8 blocks, for example, are not possible on every
// GPU. most_blocks, most_threads, most_bytes: for all calls.
struct ClusterShape {
  int blocks, threads;
  int bytes = 0, most_bytes = 0;  // of dynamic shared memory
};
template <auto kernel, int most_blocks, int most_threads, typename... Args>
bool launch_clusters(int64_t count, const ClusterShape& shape, cudaStream_t stream,
                     Args... args) {
  if (!device_attribute(cudaDevAttrClusterLaunch) || count > INT_MAX / shape.blocks)
    return false;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  auto use = [&](int64_t grid, int blocks, int threads, int bytes) {
    config.gridDim = dim3(grid);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = bytes;
    cluster.val.clusterDim.x = blocks;
  };
  int largest = once_per_device([&] {
    STD_CUDA_CHECK(cudaFuncSetAttribute(
        kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    if (shape.most_bytes > 0)
      STD_CUDA_CHECK(cudaFuncSetAttribute(
          kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape.most_bytes));
    for (int blocks = most_blocks; blocks > 1; blocks /= 2) {
      use(blocks, blocks, most_threads, shape.most_bytes);
      int clusters = 0;
      if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess &&
          clusters > 0)
        return blocks;
    }
    cudaGetLastError();  // no launch has failed
    return 0;
  });
  if (shape.blocks > largest) return false;
  use(count * shape.blocks, shape.blocks, shape.threads, shape.bytes);
  STD_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args...));
  return true;
}

}  // namespace ladder
