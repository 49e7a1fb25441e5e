// 02_coalesced.cu: 01_naive.cu with x and y exchanged; nothing else changes.
//
// What it adds: the lanes of a warp compute neighbouring columns of one row of c. They
// all read the same element of a, in 1 sector, and 32 neighbours of b in 4 sectors,
// where 01_naive.cu touches 32 + 1. c is written in 4 sectors instead of 32.
//
// What limits it: loads. Each element of a is requested n times and each element of b m
// times. The caches serve most of these requests, but the load units are busy with 2
// loads per multiplication. 03_tiled.cu keeps tiles in shared memory.
//
// On an H200 it has 6% of cuBLAS's speed at 4096 x 4096 x 4096, float32.
//   a, b   any strides; coalesced if b is row-major
//   dtypes float64, float32, float16, bfloat16; sums of the 16-bit types are kept in
//   float and rounded once

#include <torch/csrc/stable/library.h>

#include "matmul.h"

using ladder::ceil_div;
using ladder::MatrixView;
using ladder::Sum;
using torch::stable::Tensor;

constexpr int kThreads = 32;  // in x: a warp
constexpr int kWarps = 8;     // in y

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

template <typename T>
__global__ void matmul_coalesced_kernel(MatrixView<T> a, MatrixView<T> b, T* c,
                                        int64_t m, int64_t n, int64_t k) {
  int64_t row = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  Sum<T> sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    Sum<T> x = a.data[a.at(row, i)];
    Sum<T> y = b.data[b.at(i, column)];
    sum += x * y;
  }
  c[row * n + column] = T(sum);
}

// -------------------------------------------------------------------------------------
// Launcher

Tensor matmul_coalesced(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, auto* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    dim3 threads(kThreads, kWarps);
    dim3 blocks =
        ladder::matmul_grid(ceil_div(size.n, kThreads), ceil_div(size.m, kWarps), "a");
    matmul_coalesced_kernel<<<blocks, threads, 0, stream>>>(a, b, c, size.m, size.n,
                                                            size.k);
  };
  return ladder::matmul<double, float, ladder::Half, ladder::BFloat16>(
      a, b, ladder::Layout::any, launch);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_coalesced(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_coalesced(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_coalesced", TORCH_BOX(&matmul_coalesced));
}
