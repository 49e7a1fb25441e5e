// 04_register_1d.cu: 03_tiled.cu with 8 elements of c per thread, in registers.
//
// What it adds: a thread computes 8 rows of one column of c. It reads an element of b
// from shared memory once and uses it 8 times from a register: 9 / 8 reads per
// multiplication instead of 2. All lanes of a warp read the same element of a, which
// takes one wavefront. A block computes a tile of 64 x 64 and goes along k in steps of
// 8.
//
// What limits it: still more than one read of shared memory per multiplication.
// 05_register_2d.cu uses each element of a several times too.
//
// On an H200 it has 30% of cuBLAS's speed at 4096 x 4096 x 4096, float32.
//   a, b   row-major, any size; float32

#include <torch/csrc/stable/library.h>

#include "matmul.h"

using ladder::ceil_div;
using ladder::element_or_zero;
using torch::stable::Tensor;

// a block's tile of c; elements along k in a step.
constexpr int kM = 64, kN = 64, kK = 8;
constexpr int kRows = 8;  // of c per thread
constexpr int kThreads = kM / kRows * kN;
static_assert(kM * kK == kThreads && kK * kN == kThreads,
              "each thread copies one element of a and one of b");
static_assert(kN % 32 == 0, "the lanes of a warp share their rows");

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

__global__ void __launch_bounds__(kThreads)
    matmul_register_1d_kernel(const float* __restrict__ a, const float* __restrict__ b,
                              float* __restrict__ c, int64_t m, int64_t n, int64_t k) {
  __shared__ float tile_a[kM][kK], tile_b[kK][kN];
  int t = threadIdx.x, column = t % kN, row = t / kN * kRows;  // within the tile
  int64_t first_row = int64_t(blockIdx.y) * kM, first_column = int64_t(blockIdx.x) * kN;
  float sum[kRows] = {};
  for (int64_t begin = 0; begin < k; begin += kK) {
    tile_a[t / kK][t % kK] =
        element_or_zero(a, first_row + t / kK, begin + t % kK, m, k);
    tile_b[t / kN][t % kN] =
        element_or_zero(b, begin + t / kN, first_column + t % kN, k, n);
    __syncthreads();  // the tiles are complete
    for (int i = 0; i < kK; ++i) {
      float y = tile_b[i][column];
      for (int r = 0; r < kRows; ++r) sum[r] += tile_a[row + r][i] * y;
    }
    __syncthreads();  // no thread reads them any more
  }
  for (int r = 0; r < kRows; ++r) {
    int64_t i = first_row + row + r, j = first_column + column;
    if (i < m && j < n) c[i * n + j] = sum[r];
  }
}

// -------------------------------------------------------------------------------------
// Launcher

Tensor matmul_register_1d(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, float* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    dim3 blocks = ladder::matmul_grid(ceil_div(size.n, kN), ceil_div(size.m, kM), "a");
    matmul_register_1d_kernel<<<blocks, kThreads, 0, stream>>>(a.data, b.data, c,
                                                               size.m, size.n, size.k);
  };
  return ladder::matmul<float>(a, b, ladder::Layout::row_major, launch);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_register_1d(a, b), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_register_1d(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_register_1d", TORCH_BOX(&matmul_register_1d));
}
