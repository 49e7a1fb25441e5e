// elementwise_mult_kernel.h: what elementwise_mult_kernel.cu offers to its bindings. No PyTorch header, on purpose.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// out[i] = a[i] * b[i] for i < n, on `stream`. Pointers to n elements each in GPU memory, n > 0. Returns at once; the
// error of the launch, if there is one, is left for cudaGetLastError.
void launch_elementwise_mult(const float* a, const float* b, float* out, int64_t n, cudaStream_t stream);
void launch_elementwise_mult(const double* a, const double* b, double* out, int64_t n, cudaStream_t stream);
