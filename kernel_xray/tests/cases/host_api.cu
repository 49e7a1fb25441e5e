// host_api.cu: the calls of the CUDA run-time that tutorials make from the host.
#include <cuda.h>

#include <cstring>

#include "case.h"

__global__ void increment_kernel(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}

// ------------------------------------------------------------------------------------------------------------------
// Memory: host -> device -> kernel -> host, in all the forms of copy.

CASE(round_trip) {
  const int n = 1000;
  const size_t bytes = n * sizeof(int);
  std::vector<int> in(n), out(n, -1);
  for (int i = 0; i < n; ++i) in[i] = 3 * i;
  int *a = nullptr, *b = nullptr;
  EXPECT_SUCCESS(cudaMalloc(&a, bytes));
  EXPECT_SUCCESS(cudaMalloc((void**)&b, bytes));
  EXPECT(a != nullptr && b != nullptr && a != b && reinterpret_cast<uintptr_t>(a) % 256 == 0);
  EXPECT_SUCCESS(cudaMemcpy(a, in.data(), bytes, cudaMemcpyHostToDevice));
  increment_kernel<<<(n + 255) / 256, 256>>>(a, n);
  EXPECT_SUCCESS(cudaMemset(b, 0xff, bytes));
  EXPECT_SUCCESS(cudaMemcpy(b, a, bytes / 2, cudaMemcpyDeviceToDevice));
  EXPECT_SUCCESS(cudaMemcpy(out.data(), b, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) EXPECT(out[i] == (i < n / 2 ? 3 * i + 1 : -1));
  EXPECT_SUCCESS(cudaMemcpy(out.data(), a, bytes, cudaMemcpyDefault));
  EXPECT(out[n - 1] == 3 * (n - 1) + 1);
  EXPECT_SUCCESS(cudaFree(a));
  EXPECT_SUCCESS(cudaFree(b));
  EXPECT_SUCCESS(cudaFree(nullptr));
}

CASE(async_and_pinned) {
  const int n = 256;
  int *pinned = nullptr, *device = nullptr, *managed = nullptr;
  cudaStream_t stream;
  EXPECT_SUCCESS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_SUCCESS(cudaMallocHost(&pinned, n * sizeof(int)));
  EXPECT_SUCCESS(cudaMallocAsync((void**)&device, n * sizeof(int), stream));
  EXPECT_SUCCESS(cudaMallocManaged(&managed, n * sizeof(int)));
  for (int i = 0; i < n; ++i) pinned[i] = managed[i] = i;
  EXPECT_SUCCESS(cudaMemsetAsync(device, 0, n * sizeof(int), stream));
  EXPECT_SUCCESS(cudaMemcpyAsync(device, pinned, n * sizeof(int), cudaMemcpyHostToDevice, stream));
  increment_kernel<<<1, n, 0, stream>>>(device, n);
  increment_kernel<<<1, n, 0, stream>>>(managed, n);
  EXPECT_SUCCESS(cudaMemcpyAsync(pinned, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_SUCCESS(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) EXPECT(pinned[i] == i + 1 && managed[i] == i + 1);
  EXPECT(cudaStreamQuery(stream) == cudaSuccess);
  EXPECT_SUCCESS(cudaFreeAsync(device, stream));
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
  EXPECT_SUCCESS(cudaFreeHost(pinned));
  EXPECT_SUCCESS(cudaFree(managed));
}

// A pitched matrix: rows copied with one call.
CASE(two_dimensions) {
  const int rows = 5, columns = 7;
  int in[rows][columns], out[rows][columns];
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) in[r][c] = 10 * r + c;
  std::memset(out, 0, sizeof(out));
  void* device = nullptr;
  size_t pitch = 0;
  EXPECT_SUCCESS(cudaMallocPitch(&device, &pitch, columns * sizeof(int), rows));
  EXPECT(pitch >= columns * sizeof(int));
  EXPECT_SUCCESS(cudaMemcpy2D(device, pitch, in, sizeof(in[0]), columns * sizeof(int), rows, cudaMemcpyHostToDevice));
  EXPECT_SUCCESS(cudaMemcpy2D(out, sizeof(out[0]), device, pitch, columns * sizeof(int), rows, cudaMemcpyDeviceToHost));
  EXPECT(std::memcmp(in, out, sizeof(in)) == 0);
  EXPECT_SUCCESS(cudaFree(device));
}

// ------------------------------------------------------------------------------------------------------------------
// Events and streams

CASE(events) {
  cudaEvent_t start, stop;
  cudaStream_t stream;
  EXPECT_SUCCESS(cudaEventCreate(&start));
  EXPECT_SUCCESS(cudaEventCreateWithFlags(&stop, cudaEventDefault));
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  EXPECT_SUCCESS(cudaEventRecord(start));
  increment_kernel<<<1, 32>>>(call.data<int>(0), call.size(0));
  EXPECT_SUCCESS(cudaEventRecord(stop, 0));
  EXPECT_SUCCESS(cudaEventSynchronize(stop));
  EXPECT_SUCCESS(cudaStreamWaitEvent(stream, stop, 0));
  EXPECT(cudaEventQuery(stop) == cudaSuccess);
  float milliseconds = -1.0f;
  EXPECT_SUCCESS(cudaEventElapsedTime(&milliseconds, start, stop));
  EXPECT(milliseconds >= 0.0f);
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
  EXPECT_SUCCESS(cudaEventDestroy(start));
  EXPECT_SUCCESS(cudaEventDestroy(stop));
}

// ------------------------------------------------------------------------------------------------------------------
// The device, and what fits on it

CASE(device_queries) {
  int count = 0, device = -1, value = 0, driver = 0, runtime = 0;
  EXPECT_SUCCESS(cudaGetDeviceCount(&count));
  EXPECT(count >= 1);
  EXPECT_SUCCESS(cudaSetDevice(0));
  EXPECT_SUCCESS(cudaGetDevice(&device));
  EXPECT(device == 0);
  cudaDeviceProp properties;
  EXPECT_SUCCESS(cudaGetDeviceProperties(&properties, 0));
  EXPECT(std::strlen(properties.name) > 0 && properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024);
  EXPECT(properties.multiProcessorCount >= 1 && properties.totalGlobalMem > 0 && properties.major >= 7);
  EXPECT(properties.sharedMemPerBlock == 48 * 1024 && properties.maxThreadsDim[2] == 64);
  EXPECT(properties.maxGridSize[0] == 2147483647 && properties.maxGridSize[1] == 65535);
  EXPECT_SUCCESS(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  EXPECT(value == properties.multiProcessorCount);
  EXPECT_SUCCESS(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  EXPECT(value == 32);
  EXPECT_SUCCESS(cudaDriverGetVersion(&driver));
  EXPECT_SUCCESS(cudaRuntimeGetVersion(&runtime));
  EXPECT(driver > 0 && runtime == CUDART_VERSION);
  size_t available = 0, total = 0;
  EXPECT_SUCCESS(cudaMemGetInfo(&available, &total));
  EXPECT(available > 0 && available <= total);
}

__global__ void __launch_bounds__(256) bounded_kernel(float* x) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[255 - threadIdx.x];
}

CASE(occupancy) {
  int blocks = 0, grid = 0, block = 0;
  EXPECT_SUCCESS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded_kernel, 256, 0));
  EXPECT(1 <= blocks && blocks <= 8);  // at most 2,048 threads per SM
  EXPECT_SUCCESS(cudaOccupancyMaxPotentialBlockSize(&grid, &block, increment_kernel, 0, 0));
  EXPECT(grid >= 1 && block >= 32 && block <= 1024 && block % 32 == 0);
  cudaFuncAttributes attributes;
  EXPECT_SUCCESS(cudaFuncGetAttributes(&attributes, increment_kernel));
  EXPECT(attributes.maxThreadsPerBlock >= 32 && attributes.maxThreadsPerBlock <= 1024);
}

// ------------------------------------------------------------------------------------------------------------------
// Errors

CASE(errors) {
  EXPECT(std::string(cudaGetErrorString(cudaSuccess)) == "no error");
  EXPECT(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue");
  EXPECT(std::string(cudaGetErrorString(cudaErrorInvalidValue)) == "invalid argument");
  EXPECT(std::string(cudaGetErrorString(cudaErrorInvalidConfiguration)) == "invalid configuration argument");
  EXPECT(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  EXPECT(std::string(cudaGetErrorName(cudaErrorApiFailureBase)) == "cudaErrorApiFailureBase");
  EXPECT(std::string(cudaGetErrorString(cudaErrorMapBufferObjectFailed)) == "mapping of buffer object failed");
  void* huge = nullptr;
  EXPECT(cudaMalloc(&huge, size_t(1) << 60) == cudaErrorMemoryAllocation);
  EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);  // peeking does not clear it,
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);     // reading does
  EXPECT(cudaGetLastError() == cudaSuccess);
  EXPECT(cudaSetDevice(1000) == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
  float milliseconds = 0.0f;
  EXPECT(cudaEventElapsedTime(&milliseconds, nullptr, nullptr) != cudaSuccess);
  EXPECT(cudaGetLastError() != cudaSuccess);
}

// Launches that cannot run: memory stays unchanged, and the error stays until it is read. `numbers` are the grid, the
// block, the bytes of dynamic shared memory and the possible errors. Then a correct launch must still work.
__global__ void touch_kernel(int* out) {
  extern __shared__ int scratch[];
  if (blockDim.x == 0) scratch[0] = 1;
  out[0] = 1;
}

CASE(bad_launch) {
  const auto n = [&](int i) { return unsigned(call.number(i)); };
  touch_kernel<<<dim3(n(0), n(1), n(2)), dim3(n(3), n(4), n(5)), size_t(n(6))>>>(call.data<int>(0));
  const cudaError_t error = cudaGetLastError();
  bool expected = false;
  for (size_t i = 7; i < call.numbers.size(); ++i) expected = expected || call.number(i) == int64_t(error);
  if (!expected) throw std::runtime_error(std::string("the launch gave ") + cudaGetErrorName(error));
  EXPECT_SUCCESS(cudaDeviceSynchronize());
  increment_kernel<<<1, 1>>>(call.data<int>(0) + 1, 1);
}
