// 01_naive.cu: c = a @ b with one thread for each number of c. The first rung of the ladder.
//
// A thread reads a row of a and a column of b: 2k numbers for 2k FLOPs, so with float 0.25 FLOP for each byte that it
// asks for, where m = n = k = 4096 could have 683 if every number came from memory once.
//
// What limits it: the order. The lanes of a warp differ in threadIdx.x, which is the row here. They read a from 32 rows
// and write c to 32 rows: 32 sectors of 32 bytes for 32 numbers, each time. 02_coalesced.cu changes that.
// On an H200 it has 1% of cuBLAS's speed at 4096 x 4096 x 4096, float32.
//   a, b   any strides: a transposed or sliced view is read where it lies, without a copy
//   dtypes float64, float32, float16, bfloat16; the 16-bit types are added up in float and rounded once

#include <torch/csrc/stable/library.h>

#include "matmul.h"

using ladder::ceil_div;
using ladder::MatrixView;
using ladder::Sum;
using torch::stable::Tensor;

constexpr int kThreads = 32;  // in x: a warp
constexpr int kWarps = 8;     // in y

// ---------------------------------------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

template <typename T>
__global__ void matmul_naive_kernel(MatrixView<T> a, MatrixView<T> b, T* c, int64_t m, int64_t n, int64_t k) {
  int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t column = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;  // both: c[row * n + n] is the next row's first number
  Sum<T> sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    Sum<T> x = a.data[a.at(row, i)];
    Sum<T> y = b.data[b.at(i, column)];
    sum += x * y;
  }
  c[row * n + column] = T(sum);
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

Tensor matmul_naive(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, auto* c, ladder::MatmulSizes size, cudaStream_t stream) {
    dim3 threads(kThreads, kWarps);
    dim3 blocks = ladder::matmul_grid(ceil_div(size.m, kThreads), ceil_div(size.n, kWarps), "b");
    matmul_naive_kernel<<<blocks, threads, 0, stream>>>(a, b, c, size.m, size.n, size.k);
  };
  return ladder::matmul<double, float, ladder::Half, ladder::BFloat16>(a, b, ladder::Layout::any, launch);
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_naive(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("matmul_naive(Tensor a, Tensor b) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("matmul_naive", TORCH_BOX(&matmul_naive)); }
