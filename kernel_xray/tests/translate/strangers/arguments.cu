// arguments.cu: launches whose arguments are 0, and of a header's kernels in functions of their names and as pointers.
//
// It prints what the kernels have written, in managed memory. A comment in Latin-1 and a byte order mark are added by
// the test.
#include <cuda_runtime.h>

#include <cstdio>

#include "arguments.h"

template <bool kTwice, typename T>
__global__ void sums_kernel(const T* in, int* sums, size_t n, float scale, T* out) {
  if (sums == nullptr) out[threadIdx.x] = (in[threadIdx.x] + n + scale) * (kTwice ? 2 : 1);
}

template <typename T>
__global__ void deduced_kernel(T value, int* out) {
  *out = 10 * sizeof(value) + value;
}

__global__ void row2d_kernel(int* out) { out[threadIdx.x] += 1; }
__global__ void null_kernel(const char* text, bool flag, int* out) { *out = text == nullptr && !flag; }

struct Owner {
  int* cell;
  ~Owner() { cudaFree(nullptr); }  // host code alone may call it
};
__global__ void owned_kernel(Owner owner) { atomicAdd(owner.cell, 1); }

// clang-format off
#define LAUNCH(tag, out) tag##2d_kernel<<<1, 4>>>(out)
// clang-format on

static void add_step(int* out) { add_step<2><<<1, 4>>>(out, 0); }
static void add_one(int* out, int times) {
  for (int i = 0; i < times; ++i) add_one<<<1, 1>>>(out);
}

int main() {
  int* x;
  cudaMallocManaged(&x, 16 * sizeof(int));
  for (int i = 0; i < 16; ++i) x[i] = i;
  sums_kernel<true><<<1, 4>>>(x, 0, 0, 0, x + 4);  // 0 is a null pointer, a size_t and a float
  sums_kernel<false, int><<<1, 4>>>(x, 0, 3, 0, x + 8);
  deduced_kernel<<<1, 1>>>(0, x + 12);
  null_kernel<<<1, 1>>>(0, 0, x + 13);
  LAUNCH(row, x);
  add_step(x);
  add_one(x, 2);
  void* arguments[] = {&x};
  const cudaKernelNodeParams one_more = {(void*)add_two, dim3(1), dim3(1), 0, arguments, nullptr};
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t executable;
  cudaGraphCreate(&graph, 0);
  cudaGraphAddKernelNode(&node, graph, nullptr, 0, &one_more);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, nullptr);
  Owner owner{x + 14};
  void* owned[] = {&owner};
  cudaLaunchKernel((void*)owned_kernel, dim3(1), dim3(4), owned);
  volatile int* flag;
  cudaMalloc(&flag, sizeof(int));
  cudaFree((void*)flag);
  cudaDeviceSynchronize();
  for (int i = 0; i < 15; ++i) std::printf("%d ", x[i]);
  std::printf("%s", cudaGetErrorName(cudaGetLastError()));
}
