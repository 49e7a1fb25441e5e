// elementwise_mult_kernel.h: the interface of elementwise_mult_kernel.cu for its
// bindings, without PyTorch's headers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// out[i] = a[i] * b[i] for i < n, on `stream`. The pointers are to n elements each in
// GPU memory; n > 0. Returns at once; cudaGetLastError reports an error of the launch.
void launch_elementwise_mult(const float* a, const float* b, float* out, int64_t n,
                             cudaStream_t stream);
void launch_elementwise_mult(const double* a, const double* b, double* out, int64_t n,
                             cudaStream_t stream);
