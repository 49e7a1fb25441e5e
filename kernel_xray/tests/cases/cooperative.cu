// cooperative.cu: launches through a kernel's address, and grids whose blocks wait for each other.
#include <cooperative_groups.h>

#include "case.h"

namespace cg = cooperative_groups;

// ------------------------------------------------------------------------------------------------------------------
// Kernels as pointers

struct Step {
  int by;
  float scale;
};

template <typename T, int kTimes>
__global__ void scale_kernel(T* out, Step step, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = T(kTimes) * T(step.scale) * T(i) + T(step.by);
}

__global__ void count_kernel(int* out) { atomicAdd(out, 1); }
__global__ void shared_bytes_kernel(int* out) {
  extern __shared__ int s[];
  s[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

// out0 float[n], out1 int[1]: each form of the call
CASE(pointers) {
  float* out = call.data<float>(0);
  int* count = call.data<int>(1);
  int n = call.size(0);
  Step step{5, 0.5f};
  void* arguments[] = {&out, &step, &n};
  void* counted[] = {&count};
  EXPECT_SUCCESS(cudaLaunchKernel((void*)scale_kernel<float, 3>, dim3((n + 63) / 64), dim3(64), arguments, 0, nullptr));
  EXPECT_SUCCESS(cudaLaunchKernel(count_kernel, dim3(2), dim3(3), counted));
  EXPECT_SUCCESS(cudaLaunchKernel((const void*)&count_kernel, 2, 5, counted, 0, 0));
  EXPECT_SUCCESS(cudaLaunchKernel(reinterpret_cast<const void*>(count_kernel), 1, 7, counted, 0, 0));
  const void* kept = (void*)count_kernel;
  EXPECT_SUCCESS(cudaLaunchKernel(kept, dim3(1), dim3(11), counted, 0, nullptr));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(13);
  EXPECT_SUCCESS(cudaLaunchKernelEx(&config, count_kernel, count));
  EXPECT_SUCCESS(cudaLaunchKernelExC(&config, (void*)count_kernel, counted));
}

CASE(wrong_pointers) {
  int* count = call.data<int>(0);
  void* counted[] = {&count};
  const cudaError_t empty = cudaLaunchKernel((void*)count_kernel, dim3(0), dim3(1), counted, 0, nullptr);
  EXPECT(empty == cudaErrorInvalidConfiguration || empty == cudaErrorInvalidValue);  // as CUDA 13.0 has it
  EXPECT(cudaGetLastError() == empty);
  EXPECT(cudaLaunchKernel((void*)nullptr, dim3(1), dim3(1), counted, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
}

CASE(no_error) { EXPECT_SUCCESS(cudaGetLastError()); }

CASE(dynamic_shared) {
  int* out = call.data<int>(0);
  void* arguments[] = {&out};
  EXPECT_SUCCESS(cudaLaunchKernel((void*)shared_bytes_kernel, dim3(1), dim3(64), arguments, 64 * sizeof(int), nullptr));
}

// ------------------------------------------------------------------------------------------------------------------
// Cooperative grids

// Launches a kernel as one, with the arguments that the case has for it.
#define COOPERATIVE(kernel, grid, block)                                                     \
  call.with_arguments_of(kernel, [&](auto... arguments) {                                    \
    void* addresses[] = {&arguments...};                                                     \
    EXPECT_SUCCESS(cudaLaunchCooperativeKernel(kernel, dim3(grid), dim3(block), addresses)); \
  })

// Each round a block adds what its left neighbour had in the round before. Local variables, shared memory and barriers
// of the block have to survive the grid's barrier.
__global__ void ring_kernel(int* values, int* sums, int rounds) {
  __shared__ int mine[2];
  cg::grid_group grid = cg::this_grid();
  const int block = static_cast<int>(grid.block_rank()), blocks = static_cast<int>(gridDim.x);
  int local[4] = {block, 0, 0, 0};
  if (threadIdx.x == 0) mine[0] = block;
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    if (threadIdx.x == 0) values[block] = mine[0];
    grid.sync();
    local[1 + round % 3] += values[(block + blocks - 1) % blocks];
    __syncthreads();
    if (threadIdx.x == 1 % blockDim.x) mine[0] += values[(block + 1) % blocks] % 7;
    grid.sync();
  }
  atomicAdd(&sums[block], local[0] + local[1] + local[2] + local[3]);
}

// values int[blocks], sums int[blocks]; number 0: threads per block, 1: rounds
CASE(ring) {
  int *values = call.data<int>(0), *sums = call.data<int>(1);
  int rounds = call.n(1);
  void* arguments[] = {&values, &sums, &rounds};
  EXPECT_SUCCESS(
      cudaLaunchCooperativeKernel((void*)ring_kernel, dim3(call.size(0)), dim3(call.number(0)), arguments, 0, nullptr));
}

// All the blocks that fit onto the device sum an array: the usual way to choose a cooperative grid.
__global__ void total_kernel(const int* in, int n, unsigned long long* partial, unsigned long long* total) {
  cg::grid_group grid = cg::this_grid();
  unsigned long long sum = 0;
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) sum += in[i];
  if (threadIdx.x == 0) partial[blockIdx.x] = 0;
  __syncthreads();
  atomicAdd(&partial[blockIdx.x], sum);
  cg::sync(grid);
  if (grid.thread_rank() == 0)
    for (unsigned b = 0; b < gridDim.x; ++b) *total += partial[b];
}

// in int[n], total int64[1]; number 0: threads per block
CASE(full_device) {
  const int* in = call.data<int>(0);
  auto* total = call.data<unsigned long long>(1);
  int n = call.size(0), threads = call.n(0), of_sm = 0, sms = 0, cooperative = 0;
  EXPECT_SUCCESS(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  EXPECT(cooperative == 1);
  EXPECT_SUCCESS(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_SUCCESS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_sm, total_kernel, threads, 0));
  unsigned long long* partial;
  EXPECT_SUCCESS(cudaMalloc(&partial, of_sm * sms * sizeof(*partial)));
  void* arguments[] = {&in, &n, &partial, &total};
  EXPECT_SUCCESS(cudaLaunchCooperativeKernel((void*)total_kernel, dim3(of_sm * sms), dim3(threads), arguments));
  EXPECT_SUCCESS(cudaDeviceSynchronize());
  EXPECT(cudaLaunchCooperativeKernel((void*)total_kernel, dim3(of_sm * sms + 1), dim3(threads), arguments) ==
         cudaErrorCooperativeLaunchTooLarge);
  EXPECT(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
  EXPECT_SUCCESS(cudaFree(partial));
}

// Threads that have returned are not waited for: every second one of each block.
__global__ void leaving_kernel(int* out) {
  if (threadIdx.x % 2) return;
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
  cg::this_grid().sync();
  if (threadIdx.x == 2) out[gridDim.x + blockIdx.x] = out[(blockIdx.x + 1) % gridDim.x];
}

CASE(leaving) { COOPERATIVE(leaving_kernel, call.size(0) / 2, 64); }

__global__ void valid_kernel(int* out) { out[0] = cg::this_grid().is_valid(); }

CASE(validity) {
  int *plain = call.data<int>(0), *cooperative = plain + 1;
  void* arguments[] = {&cooperative};
  valid_kernel<<<1, 1>>>(plain);
  EXPECT_SUCCESS(cudaLaunchCooperativeKernel((void*)valid_kernel, dim3(1), dim3(1), arguments));
}

CASE(attribute) {
  int* out = call.data<int>(0);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(call.size(0) / 2);
  config.blockDim = dim3(64);
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_SUCCESS(cudaLaunchKernelEx(&config, leaving_kernel, out));
}

// ------------------------------------------------------------------------------------------------------------------
// Mistakes: a GPU hangs or traps

CASE(not_cooperative) { leaving_kernel<<<2, 64>>>(call.data<int>(0)); }

// Blocks from `first` on end without the barrier; with `half`, half of each block's threads wait at __syncthreads.
__global__ void missing_kernel(int first, bool half) {
  if (static_cast<int>(blockIdx.x) >= first) return;
  if (half && threadIdx.x < blockDim.x / 2) __syncthreads();
  cg::this_grid().sync();
}

CASE(missing) { COOPERATIVE(missing_kernel, 3, 64); }

__global__ void outside_kernel(int* out, int index) {
  cg::this_grid().sync();
  if (blockIdx.x == 1 && threadIdx.x == 3) out[index] = 1;
}

CASE(outside) {
  int* out = nullptr;
  EXPECT_SUCCESS(cudaMalloc(&out, 512));
  int index = 1 << 28;
  void* arguments[] = {&out, &index};
  cudaLaunchCooperativeKernel((void*)outside_kernel, dim3(3), dim3(64), arguments);
}

__global__ void endless_kernel(volatile int* go) {
  while (*go) cg::this_grid().sync();
}

CASE(endless) { COOPERATIVE(endless_kernel, 3, 64); }

// A race: the neighbour's value is read without the grid's barrier between.
__global__ void race_kernel(int* values, int* out, bool barrier) {
  if (threadIdx.x == 0) values[blockIdx.x] = static_cast<int>(blockIdx.x);
  if (barrier) cg::this_grid().sync();
  if (threadIdx.x == 1) out[blockIdx.x] = values[(blockIdx.x + 1) % gridDim.x];
}

CASE(race) {
  int *values = call.ints(0), *out = call.ints(1);
  bool barrier = call.n(0);
  void* arguments[] = {&values, &out, &barrier};
  EXPECT_SUCCESS(cudaLaunchCooperativeKernel((void*)race_kernel, dim3(call.size(0)), dim3(call.number(1)), arguments));
}
