// libcudacxx.cu: libcu++ in kernels: atomics with memory orders, barriers of a block, pipelines.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

#include "case.h"

namespace cg = cooperative_groups;

// ------------------------------------------------------------------------------------------------------------------
// Atomics

template <typename T>
__global__ void operations_kernel(T* cells, T* tickets) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  tickets[t] = cuda::atomic_ref<T, cuda::thread_scope_device>(cells[0]).fetch_add(T(1), cuda::memory_order_relaxed);
  cuda::atomic_ref<T>(cells[1]).fetch_max(T(t));
  cuda::atomic_ref<T>(cells[2]).fetch_min(T(t));
  cuda::atomic_ref<T>(cells[3]).fetch_sub(T(2));
  cuda::atomic_ref<T, cuda::thread_scope_device> cell(cells[4]);
  T before = cell.load(cuda::memory_order_relaxed);
  while (!cell.compare_exchange_weak(before, T(before + 3))) {
  }
}
CASE(operations) {
  with_type<int, unsigned, long long, float, double>(call.number(0), [&](auto zero) {
    operations_kernel<<<4, 50>>>(call.data<decltype(zero)>(0), call.data<decltype(zero)>(1));
  });
}

__global__ void bits_kernel(unsigned* cells) {
  const unsigned bit = 1u << threadIdx.x;
  cuda::atomic_ref<unsigned> ones(cells[0]), zeros(cells[1]), flips(cells[2]), swaps(cells[3]);
  ones |= bit;
  zeros &= ~bit;
  flips ^= bit;
  swaps.exchange(bit);
  if (threadIdx.x == 0) {
    cuda::atomic_ref<unsigned> last(cells[4]);
    last = 10;
    ++last;
    last++;
    --last;
    last += 5;
    cells[5] = last;
  }
}
CASE(bits) { bits_kernel<<<1, 20>>>(call.data<unsigned>(0)); }

// The last block to finish adds up what all have written: right only if the ticket releases and acquires.
template <bool releases>
__global__ void last_block_kernel(const int* in, int n, int* partial, unsigned* tickets, int* out) {
  __shared__ int sums[64];
  __shared__ bool last;
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 64; ++i) sum += sums[i];
    partial[blockIdx.x] = sum;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ticket(*tickets);
    const auto order = releases ? cuda::memory_order_acq_rel : cuda::memory_order_relaxed;
    last = ticket.fetch_add(1, order) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) total += partial[b];
    *out = total;
  }
}
CASE(last_block) {
  const auto kernel = call.number(0) ? last_block_kernel<true> : last_block_kernel<false>;
  kernel<<<5, 64>>>(call.data<int>(0), call.size(0), call.data<int>(1), call.data<unsigned>(2), call.data<int>(3));
}

// A lock that the threads of a block take in turn, one of each warp at a time.
__global__ void lock_kernel(int* counter) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> lock;
  if (threadIdx.x == 0) lock.store(0, cuda::memory_order_relaxed);
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    while (lock.exchange(1, cuda::memory_order_acquire) != 0) {
    }
    *counter = *counter + 1;
    lock.store(0, cuda::memory_order_release);
  }
}
CASE(lock) { lock_kernel<<<1, 256>>>(call.data<int>(0)); }

// Threads of warp 0 wait for a flag that warp 1 sets.
__global__ void flag_kernel(int* data, int* out) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> flag;
  if (threadIdx.x == 0) flag.store(0);
  __syncthreads();
  if (threadIdx.x >= 32) {
    if (threadIdx.x == 32) {
      *data = 42;
      flag.store(1, cuda::std::memory_order_release);
    }
  } else {
    const volatile auto& seen = flag;
    while (seen.load(cuda::std::memory_order_acquire) == 0) {
    }
    out[threadIdx.x] = *data;
  }
}
CASE(flag) { flag_kernel<<<1, 64>>>(call.data<int>(0), call.data<int>(1)); }

// ------------------------------------------------------------------------------------------------------------------
// Barriers

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Rounds of neighbours' values; without the wait, a race.
template <bool waits>
__global__ void rotate_kernel(int* values, int rounds) {
  extern __shared__ int shared[];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  shared[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const int next = shared[(threadIdx.x + 1) % blockDim.x];
    if (waits)
      barrier.arrive_and_wait();
    else
      (void)barrier.arrive();
    shared[threadIdx.x] = next;
    Barrier::arrival_token token = barrier.arrive();
    barrier.wait(static_cast<Barrier::arrival_token&&>(token));
  }
  values[threadIdx.x] = shared[threadIdx.x];
}
CASE(rotate) {
  const int n = call.size(0), rounds = static_cast<int>(call.number(0));
  if (call.number(1)) rotate_kernel<true><<<1, n, n * sizeof(int)>>>(call.data<int>(0), rounds);
  if (!call.number(1)) rotate_kernel<false><<<1, n, n * sizeof(int)>>>(call.data<int>(0), rounds);
}

// A tile that the whole block copies; each thread reads what others have copied.
template <bool waits>
__global__ void tile_kernel(const float* in, float* out) {
  __shared__ alignas(16) float tile[128];
  __shared__ Barrier barrier;
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  for (int i = 0; i < 3; ++i) {
    cuda::memcpy_async(block, tile, in + 128 * i, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
    if (waits) barrier.arrive_and_wait();
    out[128 * i + threadIdx.x] = tile[127 - threadIdx.x];
    block.sync();
  }
}
CASE(tile) {
  if (call.number(0)) tile_kernel<true><<<1, 128>>>(call.data<float>(0), call.data<float>(1));
  if (!call.number(0)) tile_kernel<false><<<1, 128>>>(call.data<float>(0), call.data<float>(1));
}

// Two stages: the block copies tile i + 1 while it works on tile i.
template <bool waits>
__global__ void pipeline_kernel(const float* in, int tiles, float* out) {
  constexpr int kStages = 2;
  __shared__ alignas(16) float stage[kStages][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int fetched = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    for (; fetched < tiles && fetched < tile + kStages; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, stage[fetched % kStages], in + 64 * fetched, cuda::aligned_size_t<16>(64 * 4), pipe);
      pipe.producer_commit();
    }
    if (waits) pipe.consumer_wait();
    out[64 * tile + threadIdx.x] = 2 * stage[tile % kStages][63 - threadIdx.x];
    pipe.consumer_release();
  }
}
CASE(pipeline) {
  const int tiles = call.size(0) / 64;
  if (call.number(0)) pipeline_kernel<true><<<1, 64>>>(call.data<float>(0), tiles, call.data<float>(1));
  if (!call.number(0)) pipeline_kernel<false><<<1, 64>>>(call.data<float>(0), tiles, call.data<float>(1));
}

// A pipeline of each thread's own.
__global__ void own_pipeline_kernel(const int4* in, int4* out) {
  __shared__ int4 slots[2][32];
  auto pipe = cuda::make_pipeline();
  for (int i = 0; i < 2; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(&slots[i][threadIdx.x], in + 32 * i + threadIdx.x, sizeof(int4), pipe);
    pipe.producer_commit();
  }
  cuda::pipeline_consumer_wait_prior<1>(pipe);
  out[threadIdx.x] = slots[0][threadIdx.x];
  pipe.consumer_release();
  pipe.consumer_wait();
  out[32 + threadIdx.x] = slots[1][threadIdx.x];
  pipe.consumer_release();
}
CASE(own_pipeline) { own_pipeline_kernel<<<1, 32>>>(call.data<int4>(0), call.data<int4>(1)); }
