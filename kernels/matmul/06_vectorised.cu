// 06_vectorised.cu: 05_register_2d.cu with accesses of 16 bytes.
//
// What it adds: a thread copies 4 neighbours at once, and reads its 8 elements of a and
// of b in two accesses each: 4 reads for 64 multiplications instead of 16. For that its
// rows and columns come in groups of four neighbours, and the tile of a is stored
// transposed in shared memory, where 4 rows of one column are neighbours. Rows of the
// transposed tile have 4 unused elements: a warp writes two columns, 4 apart, of 16
// rows, and with the padding these are in 32 different banks.
//
// What limits it: waiting. The threads copy, wait, multiply, wait: memory and
// arithmetic alternate.
//
// On an H200 it has 75% of cuBLAS's speed at 4096 x 4096 x 4096, float32.
//   a, b   row-major, any size; float32. If the columns are not a multiple of 4, or a
//          matrix does not begin at a multiple of 16 bytes, its elements are copied one
//          by one

#include <torch/csrc/stable/library.h>

#include "matmul.h"

using ladder::ceil_div;
using ladder::Four;
using torch::stable::Tensor;

// a block's tile of c; elements along k in a step.
constexpr int kM = 128, kN = 128, kK = 8;
constexpr int kX = 16, kY = 16;  // threads
constexpr int kThreads = kX * kY;
constexpr int kBlocks = 2;  // resident on an SM, so at most 128 registers per thread
constexpr int kFours = 2;   // of rows, and of columns, per thread
static_assert(kM == kFours * 4 * kY && kN == kFours * 4 * kX,
              "the threads' elements make up the tile");
static_assert(kM * kK == 4 * kThreads && kK * kN == 4 * kThreads,
              "each thread copies four elements of a and of b");

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

template <bool wide>
__global__ void __launch_bounds__(kThreads, kBlocks)
    matmul_vectorised_kernel(const float* __restrict__ a, const float* __restrict__ b,
                             float* __restrict__ c, int m, int n, int k) {
  __shared__ __align__(16) float tile_a[kK][kM + 4], tile_b[kK][kN];  // a transposed
  int t = threadIdx.x, x = t % kX, y = t / kX;
  int first_row = blockIdx.y * kM, first_column = blockIdx.x * kN;
  float sum[kFours * 4][kFours * 4] = {};
  for (int begin = 0; begin < k; begin += kK) {
    int row = t / (kK / 4), column = t % (kK / 4) * 4;
    Four four = ladder::load_four<wide>(a, first_row + row, begin + column, m, k);
    for (int i = 0; i < 4; ++i) tile_a[column + i][row] = four.at[i];
    row = t / (kN / 4);
    column = t % (kN / 4) * 4;
    four = ladder::load_four<wide>(b, begin + row, first_column + column, k, n);
    four.store(&tile_b[row][column], 0);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int i = 0; i < kK; ++i) {
      Four of_a[kFours], of_b[kFours];
      for (int f = 0; f < kFours; ++f) {
        of_a[f] = Four::load(&tile_a[i][4 * (y + f * kY)], 0);
        of_b[f] = Four::load(&tile_b[i][4 * (x + f * kX)], 0);
      }
      for (int r = 0; r < 4 * kFours; ++r) {
        for (int s = 0; s < 4 * kFours; ++s)
          sum[r][s] += of_a[r / 4].at[r % 4] * of_b[s / 4].at[s % 4];
      }
    }
    __syncthreads();  // no thread reads them any more
  }
  for (int r = 0; r < 4 * kFours; ++r) {
    for (int f = 0; f < kFours; ++f) {
      Four four = {
          {sum[r][4 * f], sum[r][4 * f + 1], sum[r][4 * f + 2], sum[r][4 * f + 3]}};
      int row = first_row + 4 * (y + r / 4 * kY) + r % 4,
          column = first_column + 4 * (x + f * kX);
      ladder::store_four<wide>(four, c, row, column, m, n);
    }
  }
}

// -------------------------------------------------------------------------------------
// Launcher

Tensor matmul_vectorised(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, float* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    // Checks that int is enough: with 64-bit indices nvcc 13 splits the 16-byte stores
    // into four.
    ladder::tiles_in_grid(size, kM, kN, kK);
    dim3 blocks = ladder::matmul_grid(ceil_div(size.n, kN), ceil_div(size.m, kM), "a");
    ladder::with_widest_fours(a.data, b.data, c, size, [&](auto wide) {
      matmul_vectorised_kernel<wide.value>
          <<<blocks, kThreads, 0, stream>>>(a.data, b.data, c, size.m, size.n, size.k);
    });
  };
  return ladder::matmul<float>(a, b, ladder::Layout::row_major, launch);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_vectorised(a, b), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_vectorised(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_vectorised", TORCH_BOX(&matmul_vectorised));
}
