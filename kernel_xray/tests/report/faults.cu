// Kernels with one planted bug each, and the same kernels fixed (`fixed` is true). The line that must be named is
// marked with the name of the case.
#include <torch/csrc/stable/ops.h>

#include <cassert>
#include <functional>
#include <map>

#include "../cases/case.h"

using torch::stable::Tensor;

// ---------------------------------------------------------------------------------------------------------------
// Bounds, alignment, what was never written

__global__ void copy_kernel(const float* a, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float value = a[i];  // <- read
    c[i] = value;        // <- write
  }
}

__global__ void shift_kernel(const float* a, float* c, int n, bool fixed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && (i > 0 || !fixed)) c[i] = a[i - 1];  // <- before
}

__global__ void dynamic_kernel(float* c, bool fixed) {
  extern __shared__ float buffer[];
  int last = fixed ? blockDim.x - 1 : blockDim.x;
  if (threadIdx.x == 5) buffer[last] = 2.0f;  // <- dynamic_shared
  if (threadIdx.x < 5) buffer[threadIdx.x] = 1.0f;
  __syncthreads();
  c[threadIdx.x] = buffer[0];
}

__global__ void row_kernel(float* c, bool fixed) {
  __shared__ float tile[4][32];
  for (int row = 0; row < 4; ++row) tile[row][threadIdx.x] = row;
  __syncthreads();
  int column = threadIdx.x + (fixed ? 0 : 1);
  c[threadIdx.x] = tile[1][column];  // <- row
}

__global__ void pointer_kernel(float* c, bool fixed) {
  __shared__ float one[32];
  __shared__ float two[32];
  float* walk = one;
  two[threadIdx.x] = 0.0f;
  walk[threadIdx.x + (fixed ? 0 : 4)] = 1.0f;  // <- pointer
  c[threadIdx.x] = two[threadIdx.x] + threadIdx.x;
}

__global__ void local_kernel(const float* a, float* c, bool fixed) {
  float window[4];
  for (int i = 0; i < 4; ++i) window[i] = a[i];
  int which = threadIdx.x % (fixed ? 4 : 5);
  c[threadIdx.x] = window[which];  // <- local
}

__global__ void other_local_kernel(float* c, bool fixed) {
  __shared__ float* lent;
  float mine[2] = {c[0], c[1]};
  float* from = mine;
  if (threadIdx.x == 0) lent = mine;
  __syncthreads();
  if (!fixed && threadIdx.x == 3) from = lent;
  c[threadIdx.x + 2] = from[1];  // <- other_local
}

__global__ void pair_kernel(const float* a, float4* c, bool fixed) {
  const float* from = a + (fixed ? 4 : 2);
  c[threadIdx.x] = reinterpret_cast<const float4*>(from)[threadIdx.x];  // <- misaligned
}

__global__ void unset_shared_kernel(float* c, bool fixed) {
  __shared__ float sums[64];
  if (threadIdx.x < 32 || fixed) sums[threadIdx.x] = threadIdx.x;
  c[threadIdx.x] = sums[threadIdx.x];  // <- unset_shared
}

__global__ void sum_kernel(const float* a, float* sum, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(sum, a[i]);  // <- unset_global
}

// ---------------------------------------------------------------------------------------------------------------
// Races

__global__ void reverse_kernel(const float* a, float* c, bool fixed) {
  __shared__ float tile[64];
  tile[threadIdx.x] = a[threadIdx.x];  // <- reverse_other
  if (fixed) __syncthreads();
  c[threadIdx.x] = tile[63 - threadIdx.x];  // <- reverse
}

__global__ void tree_kernel(const float* a, float* c, bool fixed) {
  __shared__ float sums[64];
  sums[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= 32) return;
  for (int offset = 32; offset > 0; offset /= 2) {
    float mine = sums[threadIdx.x];
    float other = sums[threadIdx.x + offset];  // <- tree
    if (fixed) __syncwarp();
    if (threadIdx.x < offset) sums[threadIdx.x] = mine + other;
    if (fixed) __syncwarp();
  }
  if (threadIdx.x == 0) c[0] = sums[0];
}

__global__ void reuse_kernel(const float* a, float* c, bool fixed) {
  __shared__ float tile[64];
  float sum = 0;
  for (int round = 0; round < 4; ++round) {
    tile[threadIdx.x] = a[round * 64 + threadIdx.x];
    __syncthreads();
    sum += tile[63 - threadIdx.x];  // <- reuse
    if (fixed) __syncthreads();
  }
  c[threadIdx.x] = sum;
}

__global__ void neighbour_kernel(float* c, bool fixed) {
  c[threadIdx.x] = threadIdx.x;
  if (fixed) __syncthreads();
  if (threadIdx.x < 32) c[threadIdx.x + 64] = c[threadIdx.x + 32];  // <- neighbour
}

__global__ void halo_kernel(float* c, int n, bool fixed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = i;
  bool inside = threadIdx.x + 1 < blockDim.x;
  __syncthreads();
  if (i + 1 < n && (inside || !fixed)) c[n + i] = c[i + 1];  // <- halo
}

__global__ void histogram_kernel(const int* values, int* bins, int n, bool fixed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (fixed)
    atomicAdd(&bins[values[i]], 1);
  else
    bins[values[i]] += 1;  // <- histogram
}

__global__ void shared_histogram_kernel(const int* values, int* bins, bool fixed) {
  __shared__ int counts[8];
  if (threadIdx.x < 8) counts[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&counts[values[threadIdx.x]], 1);
  if (fixed) __syncthreads();
  if (threadIdx.x < 8) bins[threadIdx.x] = counts[threadIdx.x];  // <- atomic_then_read
}

// The last block to finish adds up what the others have left.
__global__ void last_block_kernel(const float* a, float* partial, int* finished, float* out, int form) {
  __shared__ bool last;
  float mine = a[blockIdx.x * blockDim.x + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(0xffffffffu, mine, offset);
  if (form == 2) {  // every thread fences before the block's barrier
    if (threadIdx.x == 0) partial[blockIdx.x] = mine;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(finished, 1) == static_cast<int>(gridDim.x) - 1;
  } else if (threadIdx.x == 0) {
    partial[blockIdx.x] = mine;
    if (form == 1) __threadfence();
    last = atomicAdd(finished, 1) == static_cast<int>(gridDim.x) - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];  // <- last_block
    *out = sum;
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Synchronisation

__global__ void two_barriers_kernel(float* c, bool fixed) {
  if (threadIdx.x < 32 || fixed)
    __syncthreads();  // <- two_barriers
  else
    __syncthreads();
  c[threadIdx.x] = 1.0f;
}

__global__ void gone_kernel(float* c, int n, bool fixed) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  if (!fixed && i >= n) return;
  tile[i] = i < n ? i : 0;
  __syncthreads();  // <- gone
  if (i < n) c[i] = tile[0];
}

__global__ void not_named_kernel(float* c, bool fixed) {
  unsigned mask = fixed ? 0xffffffffu : 0x0000ffffu;
  c[threadIdx.x] = __shfl_sync(mask, c[threadIdx.x], 0);  // <- not_named
}

__global__ void absent_lane_kernel(float* c, bool fixed) {
  float value = c[threadIdx.x];
  if (threadIdx.x < 16) value = __shfl_down_sync(0x0000ffffu, value, fixed ? 0 : 8);  // <- absent_lane
  c[threadIdx.x] = value;
}

__global__ void stuck_kernel(float* c, bool fixed) {
  if (threadIdx.x < 16 || fixed) __syncwarp();  // <- stuck
  __syncthreads();
  c[threadIdx.x] = 1.0f;
}

__global__ void endless_kernel(float* c, bool fixed) {
  volatile float* flag = c;
  while (*flag == 0.0f) {  // <- endless
    if (fixed) break;
  }
}

// Functions of the C library that store a second result through a pointer.
__global__ void second_result_kernel(float* c, int which, bool fixed) {
  float* to = c + threadIdx.x + (fixed ? 0 : 1);
  float x = threadIdx.x, sine = 0;
  if (which == 0) x += modff(x / 4, to);                           // <- whole
  if (which == 1) x += frexpf(x, reinterpret_cast<int*>(to));      // <- power
  if (which == 2) x += remquof(x, 7, reinterpret_cast<int*>(to));  // <- quotient
  if (which == 3) sincosf(x, &sine, to);                           // <- cosine
  if (x + sine < -100) c[threadIdx.x] = x;
}

__device__ float* kept[32];
__global__ void allocate_kernel() {
  float* const mine = threadIdx.x % 2 ? new float[4] : static_cast<float*>(malloc(4 * sizeof(float)));
  for (int k = 0; k < 4; ++k) mine[k] = k;
  kept[threadIdx.x] = mine;
}
__global__ void free_kernel(float* c, bool fixed) {
  float* const mine = kept[threadIdx.x];
  c[threadIdx.x] = mine[0] + mine[3];
  if (threadIdx.x == 7 && !fixed) mine[4] = 0;  // <- heap
  if (threadIdx.x % 2)
    delete[] mine;
  else
    free(mine);
}

// ---------------------------------------------------------------------------------------------------------------
// What ends a kernel outside an X-ray too

__device__ int depth_of(volatile int* down, int n) {
  if (n == 0) return 0;
  return 1 + depth_of(down, n - *down);  // <- recursion
}

__global__ void hostile_kernel(float* c, int which, int zero, bool fixed) {
  if (fixed) return;
  if (threadIdx.x != 7) return;
  if (which == 0) assert(c == nullptr);  // <- assert
  if (which == 1) __trap();              // <- trap
  if (which == 2) throw std::runtime_error("thrown");
  if (which == 3) c[0] = 7 / zero;  // <- division
  if (which == 4) c[0] = depth_of(&zero, 1);
  if (which == 5) *reinterpret_cast<float*>(64) = 1.0f;  // <- wild
}

// ---------------------------------------------------------------------------------------------------------------

static float* floats(const Tensor& t) { return static_cast<float*>(t.data_ptr()); }
static int* ints(const Tensor& t) { return static_cast<int*>(t.data_ptr()); }

void copy(const Tensor& a, const Tensor& c, int64_t n) {
  copy_kernel<<<(n + 127) / 128, 128>>>(floats(a), floats(c), n);
}

Tensor copy_of(const Tensor& a, int64_t n) {  // into a tensor of its own
  Tensor c = torch::stable::empty_like(a);
  copy_kernel<<<(n + 127) / 128, 128>>>(floats(a), floats(c), n);
  return c;
}

void cuda_malloc(const Tensor& a, int64_t room) {
  const int64_t n = a.numel();
  float* memory = nullptr;
  cudaMalloc(&memory, room * sizeof(float));
  struct Free {
    float* memory;
    ~Free() { cudaFree(memory); }
  } free_it{memory};
  copy_kernel<<<(n + 127) / 128, 128>>>(floats(a), memory, n);
}

void freed(const Tensor& a, bool fixed) {
  Tensor kept = torch::stable::empty_like(a);
  float* memory = floats(kept);
  if (!fixed) kept = torch::stable::Tensor();
  copy_kernel<<<1, 128>>>(floats(a), memory, a.numel());
}

Tensor total(const Tensor& a, bool fixed) {
  Tensor sum = torch::stable::new_empty(a, {1});
  if (fixed) torch::stable::zero_(sum);
  sum_kernel<<<1, 64>>>(floats(a), floats(sum), a.numel());
  return sum;
}

Tensor last_block(const Tensor& a, const Tensor& finished, int64_t form) {
  Tensor partial = torch::stable::new_empty(a, {a.numel() / 32});
  Tensor out = torch::stable::new_empty(a, {1});
  last_block_kernel<<<a.numel() / 32, 32>>>(floats(a), floats(partial), ints(finished), floats(out), form);
  return out;
}

// The sum of all bytes, each read once.
__global__ void bytes_kernel(const uint8_t* a, int64_t bytes, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += gridDim.x * blockDim.x)
    mine += a[i];  // <- byte
  atomicAdd(sum, mine);
}

void bytes(const Tensor& a, const Tensor& sum, int64_t bytes) {
  bytes_kernel<<<4, 64>>>(static_cast<const uint8_t*>(a.data_ptr()), bytes,
                          static_cast<unsigned long long*>(sum.data_ptr()));
}

int64_t host_index(const Tensor& a, int64_t index) {
  int table[4] = {10, 11, 12, 13};
  volatile int i = static_cast<int>(index);
  return table[i % 8] + a.numel();  // <- host
}

void run(const Tensor& a, const Tensor& c, int64_t which, bool fixed) {
  const int n = a.numel();
  const std::map<int64_t, std::function<void()>> launches = {
      {0, [&] { shift_kernel<<<2, 128>>>(floats(a), floats(c), n, fixed); }},
      {1, [&] { dynamic_kernel<<<1, 64, 64 * sizeof(float)>>>(floats(c), fixed); }},
      {2, [&] { row_kernel<<<1, 32>>>(floats(c), fixed); }},
      {3, [&] { pointer_kernel<<<1, 32>>>(floats(c), fixed); }},
      {4, [&] { local_kernel<<<1, 64>>>(floats(a), floats(c), fixed); }},
      {5, [&] { pair_kernel<<<1, 32>>>(floats(a), reinterpret_cast<float4*>(floats(c)), fixed); }},
      {6, [&] { unset_shared_kernel<<<1, 64>>>(floats(c), fixed); }},
      {7, [&] { reverse_kernel<<<1, 64>>>(floats(a), floats(c), fixed); }},
      {8, [&] { tree_kernel<<<1, 64>>>(floats(a), floats(c), fixed); }},
      {9, [&] { reuse_kernel<<<1, 64>>>(floats(a), floats(c), fixed); }},
      {10, [&] { neighbour_kernel<<<1, 64>>>(floats(c), fixed); }},
      {11, [&] { halo_kernel<<<3, 32>>>(floats(c), 96, fixed); }},
      {12, [&] { histogram_kernel<<<4, 64>>>(ints(a), ints(c), n, fixed); }},
      {13, [&] { shared_histogram_kernel<<<1, 64>>>(ints(a), ints(c), fixed); }},
      {14, [&] { two_barriers_kernel<<<1, 64>>>(floats(c), fixed); }},
      {15, [&] { gone_kernel<<<1, 64>>>(floats(c), 40, fixed); }},
      {16, [&] { not_named_kernel<<<1, 32>>>(floats(c), fixed); }},
      {17, [&] { absent_lane_kernel<<<1, 32>>>(floats(c), fixed); }},
      {18, [&] { stuck_kernel<<<1, 32>>>(floats(c), fixed); }},
      {19, [&] { endless_kernel<<<1, 32>>>(floats(c), fixed); }},
      {20, [&] { other_local_kernel<<<1, 32>>>(floats(c), fixed); }},
  };
  if (which < 21)
    launches.at(which)();
  else if (which == 31)
    allocate_kernel<<<1, 32>>>(), free_kernel<<<1, 32>>>(floats(c), fixed);
  else if (which >= 27)
    second_result_kernel<<<1, 256>>>(floats(c), which - 27, fixed);
  else
    hostile_kernel<<<1, 32>>>(floats(c), which - 21, 0, fixed);
}

OPERATOR(copy, copy, "(Tensor a, Tensor(a!) c, int n) -> ()")
OPERATOR(copy_of, copy_of, "(Tensor a, int n) -> Tensor")
OPERATOR(cuda_malloc, cuda_malloc, "(Tensor a, int room) -> ()")
OPERATOR(freed, freed, "(Tensor a, bool fixed) -> ()")
OPERATOR(total, total, "(Tensor a, bool fixed) -> Tensor")
OPERATOR(last_block, last_block, "(Tensor a, Tensor(a!) finished, int form) -> Tensor")
OPERATOR(bytes, bytes, "(Tensor a, Tensor(a!) sum, int bytes) -> ()")
OPERATOR(host_index, host_index, "(Tensor a, int index) -> int")
OPERATOR(run, run, "(Tensor a, Tensor(a!) c, int which, bool fixed) -> ()")
