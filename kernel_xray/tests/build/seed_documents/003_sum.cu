// Seed document 003, as printed, repairs marked: vector addition, kernel and launcher.
// clang-format off
#include <cuda_runtime.h>
#include <stdexcept>
#include <algorithm>
#include <string>  // repaired: std::to_string is declared there

template <typename T>
__global__ void sum(T *a, T *b, T *c, int N) {
  // repaired: `if (i <= N)` let one thread write behind the end, and with the grid limited to MAXIMUM_NUM_BLOCKS
  // the elements from 4096 * 128 on were left out.
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x) {
    c[i] = a[i] + b[i];
  }
}

constexpr int CUDA_NUM_THREADS = 128;

constexpr int MAXIMUM_NUM_BLOCKS = 4096;

inline int GET_BLOCKS(const int N) {
  return std::max(std::min((N + CUDA_NUM_THREADS - 1) / CUDA_NUM_THREADS,
           MAXIMUM_NUM_BLOCKS), 1);
}

template <typename T>
void AddGPUKernel(T *in_a, T *in_b, T *out_c, int N, cudaStream_t stream) {

  sum<T><<<GET_BLOCKS(N), CUDA_NUM_THREADS, 0, stream>>>(in_a, in_b, out_c, N);

  cudaError_t err = cudaGetLastError();
  if (cudaSuccess != err)
    throw std::runtime_error("CUDA kernel failed : " + std::to_string(err));
}

// repaired: the template is used from another file, so its instance for float must be made here.
template void AddGPUKernel<float>(float *in_a, float *in_b, float *out_c, int N, cudaStream_t stream);
