// wrong/matmul.cu: matrix products with a published bug each, for lesson 08. Do not
// use.
//
//   matmul_linear_guard   one guard for both indices: correct only if 32 divides the
//                         columns of b
//   matmul_one_barrier    tiles are overwritten while other warps still read them
//
// Each computes a @ b for float32 and requests 8 bytes of global memory per
// multiplication, or 8 / 32 with tiles.

#include <torch/csrc/stable/library.h>

#include "matmul.h"

using ladder::ceil_div;
using ladder::MatrixView;
using torch::stable::Tensor;

constexpr int kTile = 32;

// -------------------------------------------------------------------------------------
// Kernels. a: m x k, b: k x n, c: m x n in row-major order.

// The guard lets threads beyond the last column through: row * n + column is an element
// of the next row.
__global__ void matmul_linear_guard_kernel(MatrixView<float> a, MatrixView<float> b,
                                           float* c, int64_t m, int64_t n, int64_t k) {
  int64_t row = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row * n + column >= m * n) return;
  float sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    sum += a.data[a.at(row, i)] * b.data[b.at(i, column)];
  }
  c[row * n + column] = sum;
}

// For m, n and k that are multiples of kTile.
__global__ void matmul_one_barrier_kernel(MatrixView<float> a, MatrixView<float> b,
                                          float* c, int64_t m, int64_t n, int64_t k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  int x = threadIdx.x, y = threadIdx.y;
  int64_t row = int64_t(blockIdx.y) * kTile + y,
          column = int64_t(blockIdx.x) * kTile + x;
  float sum = 0;
  for (int64_t begin = 0; begin < k; begin += kTile) {
    tile_a[y][x] = a.data[a.at(row, begin + x)];
    tile_b[y][x] = b.data[b.at(begin + y, column)];
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += tile_a[y][i] * tile_b[i][x];
    }
  }
  c[row * n + column] = sum;
}

// -------------------------------------------------------------------------------------
// Launchers

Tensor matmul_linear_guard(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, auto* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    dim3 threads(32, 8),
        blocks = ladder::matmul_grid(ceil_div(size.n, 32), ceil_div(size.m, 8), "a");
    matmul_linear_guard_kernel<<<blocks, threads, 0, stream>>>(a, b, c, size.m, size.n,
                                                               size.k);
  };
  return ladder::matmul<float>(a, b, ladder::Layout::any, launch);
}

Tensor matmul_one_barrier(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, auto* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    STD_TORCH_CHECK(size.m % kTile == 0 && size.n % kTile == 0 && size.k % kTile == 0,
                    "a and b must have multiples of 32 rows and columns");
    dim3 threads(kTile, kTile), blocks(size.n / kTile, size.m / kTile);
    matmul_one_barrier_kernel<<<blocks, threads, 0, stream>>>(a, b, c, size.m, size.n,
                                                              size.k);
  };
  return ladder::matmul<float>(a, b, ladder::Layout::any, launch);
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_linear_guard(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_one_barrier(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_linear_guard", TORCH_BOX(&matmul_linear_guard));
  m.impl("matmul_one_barrier", TORCH_BOX(&matmul_one_barrier));
}
