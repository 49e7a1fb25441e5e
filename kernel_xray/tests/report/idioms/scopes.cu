// scopes.cu: atomics and fences of the block, of the cluster and of the device.
#include "idiom.h"

#include <cooperative_groups.h>
#include <cuda/atomic>

constexpr int kThreads = 64;

// ---------------------------------------------------------------------------------------------------------------------
// Atomics of the block

// Shared bins are for the block, those of the result for all blocks.
template <bool kBug>
__global__ void block_bins_kernel(const int* a, int* bins, int n) {
  __shared__ int counts[16];
  if (threadIdx.x < 16) counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = thread_index(); i < n; i += gridDim.x * blockDim.x) atomicAdd_block(&counts[a[i]], 1);
  __syncthreads();
  if (threadIdx.x >= 16) return;
  int* const bin = &bins[threadIdx.x];
  kBug ? atomicAdd_block(bin, counts[threadIdx.x]) : atomicAdd(bin, counts[threadIdx.x]);
}

IDIOM_OF(block_bins, 3, kThreads)

// Each block has a row of words in global memory; the next launch reads them all.
template <bool kBug>
__global__ void own_words_kernel(const int* a, int* words, float* sums) {
  const int block = kBug ? 0 : blockIdx.x, value = a[thread_index()];
  int* const row = words + 4 * block;
  atomicMax_block(&row[0], value);
  atomicXor_block(&row[1], value);
  for (int old = row[2], assumed = ~old; old != assumed;) {
    assumed = old;
    old = atomicCAS_block(&row[2], assumed, assumed + value);
  }
  cuda::atomic_ref<int, cuda::thread_scope_block>(row[3]).fetch_add(1, cuda::memory_order_relaxed);
  atomicAdd_block(&sums[block], static_cast<float>(value));
}

__global__ void gather_words_kernel(const int* words, const float* sums, int* out) {
  for (int k = 0; k < 4; ++k) out[5 * threadIdx.x + k] = words[4 * threadIdx.x + k];
  out[5 * threadIdx.x + 4] = static_cast<int>(sums[threadIdx.x]);
}

IDIOM(own_words) {
  const int blocks = call.size(0) / kThreads;
  own_words_kernel<kBug><<<blocks, kThreads>>>(call.ints(0), call.ints(1), call.floats(2));
  gather_words_kernel<<<1, blocks>>>(call.ints(1), call.floats(2), call.ints(3));
}

// The same between two barriers of the grid: then the other blocks read.
template <bool kBug>
__global__ void grid_words_kernel(const int* a, int* words, int* out) {
  atomicAdd_block(&words[blockIdx.x], a[thread_index()]);
  kBug ? __syncthreads() : cooperative_groups::this_grid().sync();
  if (threadIdx.x < gridDim.x) atomicMax_block(&out[blockIdx.x], words[threadIdx.x]);
}

IDIOM(grid_words) {
  const int* a = call.ints(0);
  int *words = call.ints(1), *out = call.ints(2);
  void* arguments[] = {&a, &words, &out};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&grid_words_kernel<kBug>), dim3(call.size(0) / 32),
                              dim3(32), arguments);
}

// All blocks read a word with the scope of the block, which nobody may write meanwhile.
template <bool kBug>
__global__ void common_factor_kernel(const int* a, int* factor, int* out) {
  const cuda::atomic_ref<int, cuda::thread_scope_block> common(*factor);
  const int by = common.load();
  out[thread_index()] = a[thread_index()] * by;
  if (kBug && thread_index() == 0) common.store(by);
}

IDIOM_OF(common_factor, call.size(0) / kThreads, kThreads)

// ---------------------------------------------------------------------------------------------------------------------
// Fences and releases of the block

// The first warp writes, the second one waits for the flag.
template <bool kBug>
__global__ void block_flag_kernel(const int* a, int* boxes, int* flags, int* out) {
  const int lane = threadIdx.x % 32, at = blockIdx.x * 32 + lane;
  if (threadIdx.x < 32) {
    boxes[at] = a[at];
    if (!kBug) __threadfence_block();
    atomicExch_block(&flags[at], 1);
  } else {
    const cuda::atomic_ref<int, cuda::thread_scope_block> flag(flags[at]);
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
    out[at] = boxes[at];
  }
}

IDIOM_OF(block_flag, call.size(0) / 32, kThreads)

// The last block to finish adds up what the others have left: they have to publish it to the device.
template <bool kBug>
__global__ void last_block_fence_kernel(const int* a, int* sums, int* count, int* out) {
  __shared__ bool last;
  atomicAdd_block(&sums[blockIdx.x], a[thread_index()]);
  __syncthreads();
  if (threadIdx.x == 0) {
    kBug ? __threadfence_block() : __threadfence();
    last = atomicAdd(count, 1) == static_cast<int>(gridDim.x) - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x < gridDim.x) atomicAdd(out, sums[threadIdx.x]);
}

IDIOM_OF(last_block_fence, call.size(0) / kThreads, kThreads)

template <bool kBug>
__global__ void last_block_ref_kernel(const int* a, int* partial, int* count, int* out) {
  constexpr auto kScope = kBug ? cuda::thread_scope_block : cuda::thread_scope_device;
  if (threadIdx.x > 0) return;
  partial[blockIdx.x] = a[blockIdx.x];
  const cuda::atomic_ref<int, kScope> finished(*count);
  if (finished.fetch_add(1, cuda::memory_order_acq_rel) < static_cast<int>(gridDim.x) - 1) return;
  for (unsigned i = 0; i < gridDim.x; ++i) *out += partial[i];
}

IDIOM_OF(last_block_ref, call.size(0), 32)

// ---------------------------------------------------------------------------------------------------------------------
// Inline PTX

template <bool kBug>
__global__ void last_block_ptx_kernel(const int* a, int* partial, int* count, int* out) {
  if (threadIdx.x > 0) return;
  int before;
  asm volatile("st.relaxed.cta.global.s32 [%0], %1;" ::"l"(&partial[blockIdx.x]), "r"(a[blockIdx.x]) : "memory");
  if (kBug)
    asm volatile("fence.acq_rel.cta;\natom.relaxed.gpu.global.add.s32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(count)
                 : "memory");
  else
    asm volatile("atom.global.gpu.acq_rel.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
  if (before < static_cast<int>(gridDim.x) - 1) return;
  for (unsigned i = 0; i < gridDim.x; ++i) *out += partial[i];
}

IDIOM_OF(last_block_ptx, call.size(0), 32)

// A load and a store without an order are plain.
template <bool kBug>
__global__ void ptx_count_kernel(const int* a, int* counts) {
  int* const count = &counts[a[thread_index()]];
  if (kBug)
    asm volatile("{\n.reg .s32 r;\nld.global.s32 r, [%0];\nadd.s32 r, r, 1;\nst.global.s32 [%0], r;\n}" ::"l"(count)
                 : "memory");
  else
    asm volatile("red.global.add.s32 [%0], 1;" ::"l"(count) : "memory");
}

IDIOM_OF(ptx_count, call.size(0) / kThreads, kThreads)

// The blocks of a cluster add to a word of the cluster.
template <bool kBug>
__global__ void __cluster_dims__(2, 1, 1) cluster_words_kernel(const int* a, int* words) {
  int* const word = words + (kBug ? 0 : blockIdx.x / 2);
  asm volatile("red.relaxed.cluster.global.add.s32 [%0], %1;" ::"l"(word), "r"(a[thread_index()]) : "memory");
}

IDIOM(cluster_words) { cluster_words_kernel<kBug><<<call.size(0) / 32, 32>>>(call.ints(0), call.ints(1)); }
