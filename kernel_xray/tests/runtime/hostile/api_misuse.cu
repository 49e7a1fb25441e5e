// api_misuse.cu: calls of the CUDA run-time with bad arguments. Each returns an error and the program continues.
#include "case.h"

// The call returns one of the errors, the last error is the same, and reading it clears it.
static void expect_error(cudaError_t got, std::initializer_list<cudaError_t> wanted, const char* what) {
  bool known = false;
  for (const cudaError_t error : wanted) known = known || got == error;
  if (!known) throw std::runtime_error(std::string(what) + " gave " + cudaGetErrorName(got));
  if (cudaGetLastError() != got) throw std::runtime_error(std::string(what) + ": cudaGetLastError gives another error");
  if (cudaGetLastError() != cudaSuccess) throw std::runtime_error(std::string(what) + ": the error was not cleared");
}
#define EXPECT_ERROR(call, ...) expect_error((call), {__VA_ARGS__}, #call)

CASE(double_free) {
  void* p = nullptr;
  EXPECT_SUCCESS(cudaMalloc(&p, 64));
  EXPECT_SUCCESS(cudaFree(p));
  EXPECT_ERROR(cudaFree(p), cudaErrorInvalidValue);
}

CASE(free_of_host_memory) {
  int on_the_stack = 0;
  EXPECT_ERROR(cudaFree(&on_the_stack), cudaErrorInvalidValue);
}

CASE(free_inside_allocation) {
  char* p = nullptr;
  EXPECT_SUCCESS(cudaMalloc(&p, 1024));
  EXPECT_ERROR(cudaFree(p + 512), cudaErrorInvalidValue);
  EXPECT_SUCCESS(cudaFree(p));
}

CASE(bad_device) {
  EXPECT_ERROR(cudaSetDevice(1000), cudaErrorInvalidDevice);
  EXPECT_ERROR(cudaSetDevice(-1), cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  EXPECT_ERROR(cudaGetDeviceProperties(&properties, 77), cudaErrorInvalidDevice);
  int value = 0;
  EXPECT_ERROR(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 77), cudaErrorInvalidDevice);
}

CASE(bad_copies) {
  int a = 0, b = 0;
  int* device = nullptr;
  EXPECT_SUCCESS(cudaMalloc(&device, sizeof(int)));
  EXPECT_ERROR(cudaMemcpy(&a, &b, sizeof(int), static_cast<cudaMemcpyKind>(99)), cudaErrorInvalidMemcpyDirection);
  EXPECT_ERROR(cudaMemcpy(nullptr, device, sizeof(int), cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMemcpy(device, nullptr, sizeof(int), cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMemset(nullptr, 0, 16), cudaErrorInvalidValue);
  EXPECT_SUCCESS(cudaMemcpy(&a, device, 0, cudaMemcpyDeviceToHost));
  EXPECT_SUCCESS(cudaFree(device));
}

CASE(huge_allocation) {
  void* p = &p;
  EXPECT_ERROR(cudaMalloc(&p, ~size_t(0) / 2), cudaErrorMemoryAllocation);
}

CASE(unused_events) {
  cudaEvent_t start, stop;
  float milliseconds = 0.0f;
  EXPECT_SUCCESS(cudaEventCreate(&start));
  EXPECT_SUCCESS(cudaEventCreate(&stop));
  EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorInvalidResourceHandle);
  EXPECT_SUCCESS(cudaEventDestroy(start));
  EXPECT_SUCCESS(cudaEventDestroy(stop));
}

__constant__ float coefficients[4];

CASE(copy_beyond_symbol) {
  const float values[5] = {};
  EXPECT_ERROR(cudaMemcpyToSymbol(coefficients, values, sizeof(values)), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMemcpyToSymbol(coefficients, values, 8, 12), cudaErrorInvalidValue);
}

// For the simulator alone: on a GPU these handles are pointers that the driver follows.
CASE(destroyed_handles) {
  cudaStream_t stream;
  cudaEvent_t event;
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  EXPECT_SUCCESS(cudaEventCreate(&event));
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
  EXPECT_SUCCESS(cudaEventDestroy(event));
  EXPECT_ERROR(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle, cudaErrorContextIsDestroyed);
  EXPECT_ERROR(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle, cudaErrorContextIsDestroyed);
  EXPECT_ERROR(cudaEventRecord(event), cudaErrorInvalidResourceHandle);
}

__global__ void touch_kernel(int* out) { out[0] = 1; }

CASE(launch_on_destroyed_stream) {
  cudaStream_t stream;
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
  touch_kernel<<<1, 1, 0, stream>>>(call.data<int>(0));
  EXPECT(cudaPeekAtLastError() == cudaErrorInvalidResourceHandle ||
         cudaPeekAtLastError() == cudaErrorContextIsDestroyed);
  EXPECT(cudaGetLastError() != cudaSuccess);
}
