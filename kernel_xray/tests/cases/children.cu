// children.cu: kernels that launch kernels.
#include "case.h"

__global__ void add_kernel(int* out, int value) { out[threadIdx.x] += value; }

// A child sees what its parent wrote before and after the launch of another block's thread.
__global__ void parent_kernel(int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) in[i] = i;
  __syncthreads();
  if (threadIdx.x == 0 && i < n) add_kernel<<<1, blockDim.x>>>(out + i, in[i] + 1);
}

CASE(one_each) {
  const int threads = 32, n = call.size(0);
  parent_kernel<<<n / threads, threads>>>(call.data<int>(0), call.data<int>(1), n);
}

// Launches of one thread into one stream are in order.
__global__ void digit_kernel(int* out, int digit) { *out = *out * 10 + digit; }
__global__ void ordered_kernel(int* out) {
  for (int i = 1; i <= 5; ++i) digit_kernel<<<1, 1>>>(out, i);
  cudaStream_t stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) *out = -1;
  digit_kernel<<<1, 1, 0, stream>>>(out + 1, 6);
  digit_kernel<<<1, 1, 0, stream>>>(out + 1, 7);
  cudaStreamDestroy(stream);
  digit_kernel<<<1, 1, 0, cudaStreamFireAndForget>>>(out + 2, 8);
  if (cudaGetLastError() != cudaSuccess) *out = -1;
}

CASE(ordered) { ordered_kernel<<<1, 1>>>(call.data<int>(0)); }

// A tail launch runs after all descendants of its parent.
template <typename T>
__global__ void tree_kernel(T* count, int depth) {
  atomicAdd(count, T(1));
  if (depth > 0 && threadIdx.x == 0) tree_kernel<T><<<2, 2>>>(count, depth - 1);
}
__global__ void copy_kernel(const int* from, int* to) { *to = *from; }
__global__ void root_kernel(int* out, int depth) {
  copy_kernel<<<1, 1, 0, cudaStreamTailLaunch>>>(out, out + 1);
  tree_kernel<int><<<2, 2>>>(out, depth);
}

CASE(tree) { root_kernel<<<1, 1>>>(call.data<int>(0), static_cast<int>(call.number(0))); }

// Quicksort as published examples do it: each part by a kernel of its own.
__global__ void sort_kernel(int* data, int left, int right, int depth) {
  int *l = data + left, *r = data + right;
  const int pivot = data[(left + right) / 2];
  while (l <= r) {
    while (*l < pivot) ++l;
    while (*r > pivot) --r;
    if (l <= r) {
      const int t = *l;
      *l++ = *r;
      *r-- = t;
    }
  }
  const int last = static_cast<int>(r - data), first = static_cast<int>(l - data);
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  if (left < last) sort_kernel<<<1, 1, 0, s>>>(data, left, last, depth + 1);
  if (first < right) sort_kernel<<<1, 1, 0, s>>>(data, first, right, depth + 1);
  cudaStreamDestroy(s);
}

CASE(sort) { sort_kernel<<<1, 1>>>(call.data<int>(0), 0, call.size(0) - 1, 0); }

// ------------------------------------------------------------------------------------------------------------------
// Mistakes

__global__ void deep_kernel(int* out, int depth) {
  *out = depth;
  if (depth < 100) deep_kernel<<<1, 1>>>(out, depth + 1);
}
CASE(deep) { deep_kernel<<<1, 1>>>(call.data<int>(0), 0); }

__global__ void empty_grid_kernel(int* out, int blocks) { add_kernel<<<blocks, 1>>>(out, 1); }
CASE(empty_grid) { empty_grid_kernel<<<1, 1>>>(call.data<int>(0), static_cast<int>(call.number(0))); }

__global__ void local_kernel(int* out, int which) {
  __shared__ int shared[1];
  int local[1] = {5};
  shared[0] = 6;
  add_kernel<<<1, 1>>>(which == 0 ? out : which == 1 ? local : shared, 1);
  *out += local[0] + shared[0];
}
CASE(local) { local_kernel<<<1, 1>>>(call.data<int>(0), static_cast<int>(call.number(0))); }

__global__ void outside_kernel(int* out, int index) { out[index] = 1; }
__global__ void parent_of_outside_kernel(int* out) { outside_kernel<<<1, 1>>>(out, 1 << 28); }
CASE(outside) {
  int* out = nullptr;
  EXPECT_SUCCESS(cudaMalloc(&out, 512));
  parent_of_outside_kernel<<<1, 1>>>(out);
}

// The child's threads race with each other, or not.
__global__ void same_kernel(int* out, int distance) { out[threadIdx.x / distance] = static_cast<int>(threadIdx.x); }
__global__ void parent_of_same_kernel(int* out, int distance) {
  int* mine = out + blockIdx.x * blockDim.x;
  mine[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) same_kernel<<<1, 32>>>(mine, distance);
}
CASE(same) { parent_of_same_kernel<<<2, 32>>>(call.data<int>(0), static_cast<int>(call.number(0))); }
