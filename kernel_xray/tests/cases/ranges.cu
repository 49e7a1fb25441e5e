// ranges.cu: threads that run one after another in one loop, until one of them waits. With number 0 set, every thread
// waits first and runs on a fibre of its own: the results must be the same.
#include <cstdio>

#include "case.h"

struct Parameters {
  int values[4];
};

__device__ unsigned linear() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// Early exits, branches, loops of different lengths, an index of three dimensions, parameters that a thread changes.
__global__ void mixed_kernel(float* out, Parameters own, int n, bool fibres) {
  if (fibres) __syncthreads();
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + linear();
  if (i % 7 == 3) return;
  float sum = 0;
  for (unsigned k = 0; k < i % 13; ++k) sum += 1.0f / (k + i);
  own.values[i % 4] += static_cast<int>(i);
  out[i] = i % 2 ? sum + n++ : sum * n--;
  out[i] += own.values[0] + 2 * own.values[1] + 3 * own.values[2] + threadIdx.z * 100 + threadIdx.y * 10;
  out[i] += n;
}
CASE(mixed) {
  mixed_kernel<<<dim3(3, 2), dim3(5, 4, 3)>>>(call.data<float>(0), Parameters{{1, 2, 3, 4}}, 9, call.number(0));
}

// A thread reads what the next one overwrites.
__global__ void shift_kernel(int* x, bool fibres) {
  if (fibres) __syncthreads();
  x[threadIdx.x] = x[threadIdx.x + 1];
}
CASE(shift) { shift_kernel<<<1, call.size(0) - 1>>>(call.data<int>(0), call.number(0)); }

// Threads add themselves to a list, print, or leave by the PTX instruction.
__global__ void list_kernel(int* list, int* count, bool fibres) {
  if (fibres) __syncthreads();
  if (threadIdx.x % 16 == 0) printf("first %u\n", threadIdx.x);
  if (threadIdx.x % 3 == 1) asm volatile("exit;");
  list[atomicAdd(count, 1)] = threadIdx.x;
  if (threadIdx.x % 16 == 0) printf("second %u\n", threadIdx.x);
}
CASE(list) { list_kernel<<<1, 80>>>(call.data<int>(0), call.data<int>(1), call.number(0)); }

// Threads exit before the first one waits, in the middle of a warp, and after it. Each keeps a reference to its index.
__global__ void late_kernel(int* out, unsigned first, bool fibres) {
  if (fibres) __syncthreads();
  __shared__ int votes, lanes[32];
  const auto& me = threadIdx;
  if (me.x < first) return;
  if (me.x == first) votes = 0;
  const int arrived = __syncthreads_count(1);
  atomicAdd(&votes, 1);
  if (me.x % 5 == 0) return;
  __syncthreads();
  const unsigned mask = __ballot_sync(__activemask(), 1);
  if (me.x / 32 == 2) lanes[me.x % 32] = __shfl_sync(mask, me.x, 67 % 32);
  out[me.x] = votes * 1000000 + arrived * 1000 + me.x + (me.x / 32 == 2 ? 500 * (lanes[me.x % 32] == 67) : 0);
}
CASE(late) { late_kernel<<<2, 100>>>(call.data<int>(0), call.number(1), call.number(0)); }

__global__ void child_kernel(int* out, int of) { out[of] += of; }
__global__ void parent_kernel(int* out, bool fibres) {
  if (fibres) __syncthreads();
  if (threadIdx.x % 8 == 5) child_kernel<<<1, 1>>>(out, threadIdx.x);
  out[threadIdx.x] = 1000;
}
CASE(parent) { parent_kernel<<<1, 64>>>(call.data<int>(0), call.number(0)); }

// Thread (13, 2, 0) of block 1 has no memory to write to.
__global__ void fault_kernel(int* out, int* nothing, bool fibres) {
  if (fibres) __syncthreads();
  int* const to = blockIdx.x == 1 && threadIdx.x == 13 && threadIdx.y == 2 ? nothing : out;
  to[threadIdx.x] = 1;
}
CASE(fault) { fault_kernel<<<2, dim3(32, 4)>>>(call.data<int>(0), nullptr, call.number(0)); }
