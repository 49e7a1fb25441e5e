// 01_naive.cu: c = a @ b with one thread per element of c. The first rung of the
// ladder.
//
// A thread reads a row of a and a column of b: 2k elements for 2k FLOPs. In float that
// is 0.25 FLOPs per byte requested; at m = n = k = 4096 it could be 683, if each
// element were read from memory once.
//
// What limits it: uncoalesced accesses. The lanes of a warp differ in threadIdx.x,
// which is the row here. So they read 32 rows of a and write 32 rows of c: each request
// touches 32 sectors of 32 bytes for 32 elements. 02_coalesced.cu fixes that.
//
// On an H200 it has 1% of cuBLAS's speed at 4096 x 4096 x 4096, float32.
//   a, b   any strides: a transposed or sliced view is read in place, without a copy
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
__global__ void matmul_naive_kernel(MatrixView<T> a, MatrixView<T> b, T* c, int64_t m,
                                    int64_t n, int64_t k) {
  int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t column = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  // both: c[row * n + n] is the next row's first element.
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

Tensor matmul_naive(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, auto* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    dim3 threads(kThreads, kWarps);
    dim3 blocks =
        ladder::matmul_grid(ceil_div(size.m, kThreads), ceil_div(size.n, kWarps), "b");
    matmul_naive_kernel<<<blocks, threads, 0, stream>>>(a, b, c, size.m, size.n,
                                                        size.k);
  };
  return ladder::matmul<double, float, ladder::Half, ladder::BFloat16>(
      a, b, ladder::Layout::any, launch);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_naive(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_naive(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_naive", TORCH_BOX(&matmul_naive));
}
