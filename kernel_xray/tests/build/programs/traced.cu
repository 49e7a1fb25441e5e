// traced.cu: a program with kernels of known cost and known faults, and several ways to end. test_programs.py X-rays it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traced.cuh"

__constant__ float factor = 2.0f;
__device__ int offset = 1;

__global__ void race_kernel(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[63 - threadIdx.x];  // <- race
}

__global__ void outside_kernel(float* x, int n) {
  if (threadIdx.x <= n) x[threadIdx.x] = factor + offset;  // <- outside
}

__global__ void slow_kernel(float* x) {
  for (int i = 0; i < 10000; ++i) x[threadIdx.x] += 1;  // <- slow
}

int main(int, char** arguments) {
  const char* what = arguments[1];
  auto wanted = [&](const char* name) { return strcmp(what, name) == 0; };
  float *x, *y, host[1024];
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  for (float& value : host) value = 1;
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  if (wanted("nothing")) return 5;
  copy_kernel<<<4, 256>>>(x, y, 1);
  copy_kernel<<<4, 256>>>(x, y, 32);
  if (wanted("cost")) return 0;
  if (wanted("exit")) exit(6);
  if (wanted("abort")) abort();
  if (wanted("sleep")) sleep(60);
  if (wanted("many"))
    for (int i = 0; i < 200; ++i) copy_kernel<<<1, 32>>>(x, y, 1);
  if (wanted("slow")) slow_kernel<<<100000, 32>>>(x);
  if (wanted("race")) race_kernel<<<1, 64>>>(x);
  if (wanted("outside")) {
    float* few;
    cudaMalloc(&few, 100 * sizeof(float));
    outside_kernel<<<1, 256>>>(few, 99);
    outside_kernel<<<1, 256>>>(few, 100);
    outside_kernel<<<1, 256>>>(few, 101);  // does not run
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  }
  return 0;
}
