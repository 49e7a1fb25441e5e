// shared.cu: shared memory in every form of declaration, and the barriers of a block.
#include "case.h"

// ------------------------------------------------------------------------------------------------------------------
// Static

__global__ void reverse_kernel(int* data) {
  __shared__ int tile[64];
  const int i = threadIdx.x;
  tile[i] = data[blockIdx.x * 64 + i];
  __syncthreads();  // each thread reads an element that another thread wrote
  data[blockIdx.x * 64 + i] = tile[63 - i];
}

CASE(reverse) { reverse_kernel<<<call.size(0) / 64, 64>>>(call.data<int>(0)); }

// Two dimensions, a padded row, several names in one declaration, a scalar and a struct.
struct Pair {
  int first;
  float second;
};

__global__ void declarations_kernel(const float* in, float* out) {
  __shared__ float tile[16][16 + 1];
  __shared__ float row_sum[16], column_sum[16];
  __shared__ int total;
  __shared__ Pair pairs[2];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 16 + x];
  if (x == 0 && y == 0) total = 0;
  if (x == 0 && y < 2) pairs[y] = Pair{y, 0.5f * y};
  __syncthreads();
  if (y == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 16; ++k) sum += tile[x][k];
    row_sum[x] = sum;
  } else if (y == 1) {
    float sum = 0.0f;
    for (int k = 0; k < 16; ++k) sum += tile[k][x];
    column_sum[x] = sum;
  }
  atomicAdd(&total, 1);
  __syncthreads();
  out[y * 16 + x] = tile[x][y] + row_sum[y] + column_sum[x] + float(total) + pairs[1].second + float(pairs[1].first);
}

CASE(declarations) { declarations_kernel<<<1, dim3(16, 16)>>>(call.data<float>(0), call.data<float>(1)); }

// Shared memory of a template: separate for each type and size; and in a __device__ function.
template <typename T, int N>
__device__ T block_sum(T value) {
  __shared__ T partial[N];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int step = N / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  const T sum = partial[0];
  __syncthreads();  // before the next call writes `partial` again
  return sum;
}

template <int N>
__global__ void sums_kernel(double* out) {
  const double as_int = block_sum<int, N>(threadIdx.x);
  const double as_double = block_sum<double, N>(0.25 * threadIdx.x);
  const double again = block_sum<int, N>(2);
  if (threadIdx.x == 0) {
    out[0] = as_int;
    out[1] = as_double;
    out[2] = again;
  }
}

CASE(template_sums) {
  sums_kernel<64><<<1, 64>>>(call.data<double>(0));
  sums_kernel<256><<<1, 256>>>(call.data<double>(0) + 3);
}

// Each block has its own shared memory, which keeps its address and content across barriers.
__global__ void histogram_kernel(const int* in, int n, int* out) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

CASE(histogram) { histogram_kernel<<<5, 96>>>(call.data<int>(0), call.size(0), call.data<int>(1)); }

// ------------------------------------------------------------------------------------------------------------------
// Dynamic

__global__ void dynamic_kernel(const float* in, float* out, int n) {
  extern __shared__ float buffer[];
  float* squares = buffer + n;  // a second array behind the first
  const int i = threadIdx.x;
  buffer[i] = in[i];
  squares[i] = in[i] * in[i];
  __syncthreads();
  out[i] = buffer[n - 1 - i] + squares[(i + 1) % n];
}

CASE(dynamic) {
  const int n = call.size(0);
  dynamic_kernel<<<1, n, 2 * n * sizeof(float)>>>(call.data<float>(0), call.data<float>(1), n);
}

// Dynamic shared memory in a template: one untyped array for all instances.
template <typename T>
__global__ void dynamic_template_kernel(const T* in, T* out) {
  extern __shared__ __align__(16) unsigned char bytes[];
  T* tile = reinterpret_cast<T*>(bytes);
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

CASE(dynamic_template) {
  const int n = call.size(0);
  dynamic_template_kernel<double><<<1, n, n * sizeof(double)>>>(call.data<double>(0), call.data<double>(1));
  dynamic_template_kernel<int><<<1, n, n * sizeof(int)>>>(call.data<int>(2), call.data<int>(3));
}

// More than 48 KB must be requested first.
__global__ void large_kernel(int* out, int n) {
  extern __shared__ int large[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) large[i] = i;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = large[n - 1 - i];
}

CASE(large_dynamic) {
  const int n = call.size(0), bytes = n * int(sizeof(int));
  EXPECT(bytes > 48 * 1024);
  EXPECT_SUCCESS(cudaFuncSetAttribute(large_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  large_kernel<<<1, 128, bytes>>>(call.data<int>(0), n);
}

// ------------------------------------------------------------------------------------------------------------------
// Barriers

// One row of three per thread: the answers of __syncthreads_count, _and, _or.
__global__ void votes_kernel(int* out, int threshold) {
  const int i = threadIdx.x;
  out[3 * i] = __syncthreads_count(i < threshold);
  out[3 * i + 1] = __syncthreads_and(i < threshold) != 0;
  out[3 * i + 2] = __syncthreads_or(i < threshold) != 0;
}

CASE(barrier_votes) { votes_kernel<<<1, 100>>>(call.data<int>(0), int(call.number(0))); }

// Barriers do not wait for threads that have returned; the others meet at the next barrier.
__global__ void early_exit_kernel(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x >= 40) return;
  atomicAdd(&count, 1);
  __syncthreads();
  out[threadIdx.x] = count;
}

CASE(early_exit) { early_exit_kernel<<<1, 70>>>(call.data<int>(0)); }

// A barrier in a loop, a device function and a lambda: a running sum, step by step.
__device__ int exchange(int* cells, int i, int step, int n) {
  const int value = i >= step ? cells[i - step] : 0;
  __syncthreads();
  const auto add = [&](int v) {
    cells[i] += v;
    __syncthreads();
  };
  add(value);
  return cells[n - 1];
}

__global__ void scan_kernel(const int* in, int* out) {
  __shared__ int cells[128];
  const int i = threadIdx.x;
  cells[i] = in[i];
  __syncthreads();
  int total = 0;
  for (int step = 1; step < 128; step *= 2) total = exchange(cells, i, step, 128);
  out[i] = cells[i];
  if (i == 0) out[128] = total;
}

CASE(scan) { scan_kernel<<<1, 128>>>(call.data<int>(0), call.data<int>(1)); }
