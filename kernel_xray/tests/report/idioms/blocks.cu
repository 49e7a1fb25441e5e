// blocks.cu: blocks of one launch hand data to each other: the last block, locks, queues, look-back, device variables.
#include "idiom.h"

constexpr int kThreads = 64;

__device__ inline int warp_scan(int sum) {  // inclusive
  for (int offset = 1; offset < 32; offset *= 2) {
    const int before = __shfl_up_sync(kAll, sum, offset);
    if (threadIdx.x % 32 >= offset) sum += before;
  }
  return sum;
}

template <typename T>
void set_symbol(T& symbol, T value) {
  EXPECT_SUCCESS(cudaMemcpyToSymbol(symbol, &value, sizeof(T)));
}

// ---------------------------------------------------------------------------------------------------------------------
// The last block to finish adds up what the others have left. Each operator launches twice: its counter must start anew.

__device__ unsigned finished_in_turn;  // atomicInc sets it back to 0

template <bool kBug>
__global__ void last_block_inc_kernel(const float* a, float* partial, float* out, int n) {
  __shared__ bool last;
  const float sum = warp_sum(thread_index() < n ? a[thread_index()] : 0.0f);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    if (!kBug) __threadfence();
    last = atomicInc(&finished_in_turn, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  const float total = warp_sum(threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) *out = total;
}

IDIOM(last_block_inc) {
  set_symbol(finished_in_turn, 0u);
  for (int launch = 0; launch < 2; ++launch) RUN(last_block_inc_kernel<kBug>, ceil_div(call.n(0), 32), 32);
}

__device__ int finished;  // the last block sets it back to 0

template <bool kBug>
__global__ void last_block_add_kernel(const int* a, int* partial, int* out) {
  __shared__ int block_sum;
  __shared__ bool last;
  const int block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  if (thread == 0) block_sum = 0;
  __syncthreads();
  atomicAdd(&block_sum, a[block * blockDim.x * blockDim.y + thread]);
  __syncthreads();
  if (thread == 0) {
    partial[block] = block_sum;
    if (!kBug) __threadfence();
    last = atomicAdd(&finished, 1) == blocks - 1;
    if (kBug) __threadfence();
  }
  __syncthreads();
  if (!last || thread > 0) return;
  int total = 0;
  for (int i = 0; i < blocks; ++i) total += partial[i];
  *out = total;
  finished = 0;
}

IDIOM(last_block_add) {
  set_symbol(finished, 0);
  for (int launch = 0; launch < 2; ++launch) RUN(last_block_add_kernel<kBug>, dim3(3, 2), dim3(16, 4));
}

// The counter is a tensor; every thread writes and fences, and all threads of the last block add.
template <bool kBug>
__global__ void last_block_all_kernel(const float* a, int* count, float* squares, float* out, int n) {
  __shared__ float sums[kThreads / 32];
  __shared__ bool last;
  const int i = thread_index();
  if (i < n) squares[i] = a[i] * a[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(count, 1) == static_cast<int>(gridDim.x) - 1;
  if (!kBug) __syncthreads();
  if (!last) return;
  float mine = 0.0f;
  for (int k = threadIdx.x; k < n; k += kThreads) mine += squares[k];
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) *out = sums[0] + sums[1];
}

IDIOM_OF(last_block_all, ceil_div(call.n(0), kThreads), kThreads)

// The counter and the partial sums are of cudaMalloc.
__global__ void last_block_malloc_kernel(const float* a, float* partial, unsigned* count, float* out) {
  const float sum = warp_sum(a[thread_index()]);
  if (threadIdx.x > 0) return;
  partial[blockIdx.x] = sum;
  __threadfence();
  if (atomicAdd(count, 1u) < gridDim.x - 1) return;
  __threadfence();
  float total = 0.0f;
  for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];
  *out = total;
}

IDIOM(last_block_malloc) {
  struct Memory {
    void* start = nullptr;
    explicit Memory(size_t bytes) { EXPECT_SUCCESS(cudaMalloc(&start, bytes)); }
    ~Memory() { cudaFree(start); }
  };
  const int blocks = call.size(0) / 32;
  Memory partial((kBug ? blocks - 1 : blocks) * sizeof(float)), count(sizeof(unsigned));
  cudaMemset(count.start, 0, sizeof(unsigned));
  last_block_malloc_kernel<<<blocks, 32>>>(call.floats(0), static_cast<float*>(partial.start),
                                           static_cast<unsigned*>(count.start), call.floats(1));
}

__device__ int kept, blocks_done;  // the last block sets both back to 0

template <bool kBug>
__global__ void append_kernel(const int* a, int* out, int n) {
  const int i = thread_index();
  if (i < n && a[i] > 0) out[atomicAdd(&kept, 1)] = a[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x > 0 || atomicAdd(&blocks_done, 1) < static_cast<int>(gridDim.x) - 1) return;
  blocks_done = 0;
  if (!kBug) kept = 0;
}

IDIOM(append) {
  set_symbol(kept, 0);
  set_symbol(blocks_done, 0);
  for (int launch = 0; launch < 2; ++launch) RUN(append_kernel<kBug>, ceil_div(call.n(0), kThreads), kThreads);
}

// ---------------------------------------------------------------------------------------------------------------------
// Locks

__device__ void acquire(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {
  }
  __threadfence();
}

__device__ void release(int* mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

// One thread of each block.
template <bool kBug>
__global__ void lock_of_blocks_kernel(const float* a, const float* b, float* dot, int* mutex, int n) {
  float sum = 0.0f;
  for (int i = thread_index(); i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  sum = warp_sum(sum);
  if (threadIdx.x > 0) return;
  acquire(mutex);
  if (kBug) release(mutex);
  *dot += sum;
  if (!kBug) release(mutex);
}

IDIOM_OF(lock_of_blocks, 4, 32)

// The first lane of each warp of one block: the threads make progress on their own.
template <bool kBug>
__global__ void lock_of_warps_kernel(int* mutex, int* total) {
  if (threadIdx.x % 32 != 0) return;
  while (atomicCAS(mutex, 0, 1) != 0) {
  }
  __threadfence();
  *total += threadIdx.x;
  if (!kBug) __threadfence();
  atomicExch(mutex, 0);
}

IDIOM_OF(lock_of_warps, 1, 256)

// A lock for each bucket, which lanes of one warp want at the same time.
template <bool kBug>
__global__ void bucket_locks_kernel(const int* a, int* locks, int* sums, int n) {
  const int i = thread_index();
  if (i >= n) return;
  const int bucket = a[i] % 8;
  int* const counts = sums + 8;
  int* lock = &locks[kBug ? i % 8 : bucket];
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) != 0) continue;
    __threadfence();
    sums[bucket] += a[i];
    counts[bucket] += 1;
    __threadfence();
    atomicExch(lock, 0);
    done = true;
  }
}

IDIOM_OF(bucket_locks, ceil_div(call.n(0), kThreads), kThreads)

// The first lane of each warp takes the lock and gives it back for the whole warp.
template <bool kBug>
__global__ void lock_for_warp_kernel(const float* a, float* total, int* mutex) {
  const int lane = threadIdx.x % 32;
  if (lane == 0) acquire(mutex);
  __syncwarp();
  total[lane] += a[thread_index()];
  if (!kBug) __syncwarp();
  if (lane == 0) release(mutex);
}

IDIOM_OF(lock_for_warp, call.size(0) / kThreads, kThreads)

// Served in the order of the tickets: next to be drawn, next to be served.
template <bool kBug>
__global__ void ticket_lock_kernel(const int* a, int* tickets, int* total) {
  if (threadIdx.x % 32 != 0) return;
  const int mine = atomicAdd(&tickets[0], 1);
  while (atomicAdd(&tickets[1], 0) != mine) {
  }
  __threadfence();
  *total += a[thread_index() / 32];
  __threadfence();
  if (!kBug) atomicAdd(&tickets[1], 1);
}

IDIOM_OF(ticket_lock, call.size(0) / 2, 64)

// ---------------------------------------------------------------------------------------------------------------------
// Work for blocks

// Blocks that stay, and take row after row from a counter.
template <bool kBug>
__global__ void persistent_kernel(const float* a, int* next, float* out, int rows, int columns) {
  __shared__ int row;
  for (;;) {
    if (threadIdx.x == 0) row = atomicAdd(next, 1);
    __syncthreads();
    if (row >= rows) return;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) out[row * columns + c] = 2 * a[row * columns + c];
    if (!kBug) __syncthreads();
  }
}

IDIOM_OF(persistent, 3, kThreads)

// A scan in three launches: within blocks, over their totals, and the sum of the two.
__global__ void scan_blocks_kernel(const int* a, int* out, int* totals, int n) {
  const int i = thread_index(), sum = warp_scan(i < n ? a[i] : 0);
  if (i < n) out[i] = sum;
  if (threadIdx.x == 31) totals[blockIdx.x] = sum;
}

__global__ void scan_totals_kernel(int* totals, int n) {  // exclusive
  const int mine = threadIdx.x < n ? totals[threadIdx.x] : 0, sum = warp_scan(mine);
  if (threadIdx.x < n) totals[threadIdx.x] = sum - mine;
}

template <bool kBug>
__global__ void add_totals_kernel(int* out, const int* totals, int n) {
  const int i = thread_index();
  if (i < n) out[i] += totals[kBug ? blockIdx.x + 1 : blockIdx.x];
}

IDIOM(three_scans) {
  const int n = call.n(0), blocks = ceil_div(n, 32);
  scan_blocks_kernel<<<blocks, 32>>>(call.ints(0), call.ints(2), call.ints(1), n);
  scan_totals_kernel<<<1, 32>>>(call.ints(1), blocks);
  add_totals_kernel<kBug><<<blocks, 32>>>(call.ints(2), call.ints(1), n);
}

// A scan in one launch (decoupled look-back): each tile adds up its predecessors' sums, back to one whose prefix is
// known. Tiles are numbered in the order in which blocks start. State 1: the sum is there; 2: the prefix too.
template <bool kBug>
__global__ void look_back_kernel(const int* a, int* next, int* states, int* sums, int* prefixes, int* out, int n) {
  int tile = threadIdx.x == 0 ? atomicAdd(next, 1) : 0, before = 0;
  tile = __shfl_sync(kAll, tile, 0);
  const int i = tile * 32 + threadIdx.x, sum = warp_scan(i < n ? a[i] : 0);
  if (threadIdx.x == 31) {
    sums[tile] = sum;
    __threadfence();
    atomicExch(&states[tile], 1);
    for (int t = tile - 1, state = 1; t >= 0 && state != 2; --t) {
      while ((state = atomicAdd(&states[t], 0)) == 0) {
      }
      __threadfence();
      before += state == 2 ? prefixes[t] : sums[t];
    }
    prefixes[tile] = before + sum;
    if (!kBug) __threadfence();
    atomicExch(&states[tile], 2);
  }
  before = __shfl_sync(kAll, before, 31);
  if (i < n) out[i] = before + sum;
}

IDIOM_OF(look_back, ceil_div(call.n(0), 32), 32)

// The same with state and sum in one word of 64 bits, which needs no fence: a volatile access is a relaxed one.
template <bool kBug>
__global__ void packed_look_back_kernel(const int* a, int* next, volatile unsigned long long* words, int* out, int n) {
  int tile = threadIdx.x == 0 ? atomicAdd(next, 1) : 0, before = 0;
  tile = __shfl_sync(kAll, tile, 0);
  const int i = tile * 32 + threadIdx.x, sum = warp_scan(i < n ? a[i] : 0);
  if (threadIdx.x == 31) {
    words[tile] = 1ull << 32 | static_cast<unsigned>(sum);
    unsigned long long word = 0;
    for (int t = tile - 1; t >= (kBug ? -1 : 0) && word >> 32 != 2; --t) {
      do word = words[t];
      while (word >> 32 == 0);
      before += static_cast<int>(word);
    }
    words[tile] = 2ull << 32 | static_cast<unsigned>(before + sum);
  }
  before = __shfl_sync(kAll, before, 31);
  if (i < n) out[i] = before + sum;
}

IDIOM_OF(packed_look_back, ceil_div(call.n(0), 32), 32)

// ---------------------------------------------------------------------------------------------------------------------
// Variables of the device

__device__ int started, ready;

// Running sums over blocks, in the order in which they start: each waits until its predecessor is ready.
template <bool kBug>
__global__ void chain_kernel(const int* a, int* running, int n) {
  const int sum = warp_scan(thread_index() < n ? a[thread_index()] : 0);
  if (threadIdx.x < 31) return;
  const int place = atomicAdd(&started, 1);
  int before = 0;
  if (kBug && place > 0) before = running[place - 1];
  while (atomicAdd(&ready, 0) != place) {
  }
  __threadfence();
  if (!kBug && place > 0) before = running[place - 1];
  running[place] = before + sum;
  __threadfence();
  atomicAdd(&ready, 1);
}

IDIOM(chain) {
  set_symbol(started, 0);
  set_symbol(ready, 0);
  chain_kernel<kBug><<<ceil_div(call.n(0), 32), 32>>>(call.ints(0), call.ints(1), call.n(0));
}

__device__ int bins[16];

template <bool kBug>
__global__ void device_bins_kernel(const int* a, int n) {
  const int i = thread_index();
  if (i >= n) return;
  if (kBug)
    bins[a[i]] += 1;
  else
    atomicAdd(&bins[a[i]], 1);
}

IDIOM(device_bins) {
  const int n = call.n(0);
  void* start = nullptr;
  cudaGetSymbolAddress(&start, bins);
  cudaMemset(start, 0, sizeof(bins));
  device_bins_kernel<kBug><<<ceil_div(n, kThreads), kThreads>>>(call.ints(0), n);
  cudaMemcpyFromSymbol(call.ints(1), bins, sizeof(bins));
}

__managed__ float limit;
__managed__ int above;

template <bool kBug>
__global__ void managed_kernel(const float* a, int n) {
  const int i = thread_index();
  if (i >= n || a[i] <= limit) return;
  if (kBug)
    above += 1;
  else
    atomicAdd(&above, 1);
}

IDIOM(managed) {
  const int n = call.n(0);
  limit = 0.5f;
  above = 0;
  managed_kernel<kBug><<<ceil_div(n, kThreads), kThreads>>>(call.floats(0), n);
  cudaDeviceSynchronize();
  *call.ints(1) = above;
}
