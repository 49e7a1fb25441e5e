// traced.cuh: a kernel in a header.
#pragma once

__global__ void copy_kernel(const float* x, float* y, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i * stride % 1024];  // <- copy
}
