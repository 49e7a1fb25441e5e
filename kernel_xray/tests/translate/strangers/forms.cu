// forms.cu: for test_strangers.py: macros in the place of a launch's brackets and of a pragma, asynchronous copies by
// name, `return;` in main, the host's memory where a call wants the device's, results, contexts and attributes of the
// driver interface, and calls that only several processes or devices, or compiled kernels, need.
#include <cstdio>
#include <vector>

#include <cuda.h>
#include <cuda_pipeline_primitives.h>

#define UNROLLED #pragma unroll
#define WARPS(count, bytes) <<<1, 32 * (count), \
                               bytes>>>
#define ONE_THREAD <<<1, 1>>>
#define RUN(kernel) kernel ONE_THREAD

// Each thread gets its neighbour's element; of every fourth, the upper half is zeros.
__global__ void rotate(const int2* in, int2* out) {
  extern __shared__ int2 stage[];
  const int i = threadIdx.x, n = blockDim.x;
  __pipeline_memcpy_async(&stage[i], &in[i], sizeof(int2), i % 4 == 3 ? sizeof(int) : 0);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[i] = stage[(i + 1) % n];
}

__global__ void sum(const int2* in, int n, int* out) {
  int total = 0;
  UNROLLED
  for (int i = 0; i < n; ++i) total += in[i].x + in[i].y;
  *out += total;
}

int main(int argc, char**) {
  constexpr int kCount = 64;
  int2 *in, *out;
  int* total;
  cudaMallocManaged(&in, kCount * sizeof(int2));
  cudaMallocManaged(&out, kCount * sizeof(int2));
  cudaMallocManaged(&total, sizeof(int));
  *total = 0;
  const auto fill = [&](int from) {
    if (from < 0) return;
    for (int i = 0; i < kCount; ++i) in[i] = {from + i, 1000};
  };
  fill(1);
  if (argc > 1) return;
  rotate WARPS(2, kCount * sizeof(int2))(in, out);
  sum ONE_THREAD(out, kCount, total);
  RUN(sum)(in, 1, total);
  cudaDeviceSynchronize();
  printf("%d %d %d %d %d ", out[0].x, out[2].y, out[63].x, out[63].y, *total);

  int here[4] = {1, 2, 3, 4}, there[4] = {};
  std::vector<int> heap(4);
  int* pinned;
  cudaMallocHost(&pinned, sizeof here);
  printf("%d %d %d ", cudaMemset(here, 0, sizeof here), cudaMemset(heap.data(), 0, sizeof here), here[3]);
  printf("%d ", cudaMemcpy(there, here, sizeof here, cudaMemcpyHostToDevice));
  printf("%d ", cudaMemcpy(there, here, sizeof here, cudaMemcpyDeviceToHost));
  printf("%d ", cudaMemcpy(there, here, sizeof here, cudaMemcpyDefault));
  printf("%d ", cudaMemcpy(heap.data(), in, sizeof here, cudaMemcpyDeviceToHost));
  printf("%d %d ", cudaMemset(pinned, 0, sizeof here), there[3] + heap[2]);

  const char *name, *text;
  CUdevice device;
  printf("%d %d ", cuInit(0), cuDeviceGet(&device, 0));
  printf("%d ", cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &name) || cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
  printf("%s: %s; ", name, text);
  printf("%d ", cuGetErrorName(static_cast<CUresult>(12345), &name));
  CUcontext context, retained;
  CUdeviceptr start, inside = reinterpret_cast<CUdeviceptr>(out + 5);
  unsigned long long id;
  size_t bytes;
  char first[7];
  int warp, mapped, last;
  printf("%d ", cuCtxGetCurrent(&context) || cuDevicePrimaryCtxRetain(&retained, device) || context != retained);
  printf("%d ", cuCtxGetId(context, &id) || cuCtxSetCurrent(context) || cuCtxGetDevice(&device) || device);
  printf("%d ", cuDevicePrimaryCtxRetain(&retained, 99));
  printf("%d %s ", cuDeviceGetName(first, sizeof first, device), first);
  printf("%d ", cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  printf("%d ", cuDeviceGetAttribute(&mapped, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
  printf("%d %d %d ", warp, mapped, cuDeviceGetAttribute(&last, static_cast<CUdevice_attribute>(9999), device));
  printf("%d ", cuMemGetAddressRange(&start, &bytes, inside));
  printf("%d %d ", inside - start == 5 * sizeof(int2) && bytes == kCount * sizeof(int2),
         cuMemGetAddressRange(&start, &bytes, reinterpret_cast<CUdeviceptr>(&bytes)));
  cudaIpcMemHandle_t handle;
  CUmemGenericAllocationHandle memory;
  const CUmemAllocationProp wanted = {CU_MEM_ALLOCATION_TYPE_PINNED};
  CUmodule module;
  printf("%d %d ", cudaIpcGetMemHandle(&handle, out), cuMemCreate(&memory, 1 << 21, &wanted, 0));
  printf("%d", cuModuleLoad(&module, "kernels.cubin"));
  return 0;
}
