// 07_async.cu: 06_vectorised.cu with the next tiles in flight while these are
// multiplied.
//
// What it adds: two pairs of tiles in shared memory. The threads start the copies into
// one pair (cp.async, which needs no registers and does not wait), multiply the other
// pair, and only then wait. So memory and arithmetic work at the same time, and one
// barrier per step is enough: a thread past it knows that the new tiles are complete
// and that no thread still reads the old ones.
//
// Elements of a are copied one by one, since a copy of 16 bytes could not transpose.
// The lanes of a warp copy 4 rows of 8 elements: they read 4 sectors and, thanks to 4
// unused elements per row of the transposed tile, write to 32 banks.
//
// What limits it: a step of 8 along k is short compared with the time that a copy
// takes, and the tile sizes are a guess. 08_warp_tile.cu makes both of them parameters.
//
// On an H200 it has 81% of cuBLAS's speed at 4096 x 4096 x 4096, float32.
//   a, b   row-major, any size; float32. If the columns are not a multiple of 4, or a
//          matrix does not begin at a multiple of 16 bytes, its elements are copied one
//          by one

#include <torch/csrc/stable/library.h>

#include "async_copy.h"
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

struct Stage {
  float a[kK][kM + 4];  // transposed
  float b[kK][kN];
};

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

// Starts the copies of the tiles that begin at row `row` of a, column `column` of b,
// and index `begin` along k.
template <bool wide>
__device__ void start_copies(ladder::AsyncCopies& copies, Stage& stage, const float* a,
                             const float* b, int row, int column, int begin, int m,
                             int n, int k) {
  for (int j = 0; j < kM * kK / kThreads; ++j) {
    int i = j * kThreads + threadIdx.x;
    int from_row = row + i / kK, from = begin + i % kK;
    bool inside = from_row < m && from < k;
    copies.start<4>(&stage.a[i % kK][i / kK], a + int64_t(from_row) * k + from, inside);
  }
  constexpr int each = wide ? 4 : 1;
  for (int j = 0; j < kK * kN / (each * kThreads); ++j) {
    int i = each * (j * kThreads + threadIdx.x);
    int from_row = begin + i / kN, from = column + i % kN;
    bool inside = from_row < k && from < n;
    copies.start<4 * each>(&stage.b[i / kN][i % kN], b + int64_t(from_row) * n + from,
                           inside);
  }
  copies.commit();
}

template <bool wide>
__global__ void __launch_bounds__(kThreads, wide ? kBlocks : 1)
    matmul_async_kernel(const float* __restrict__ a, const float* __restrict__ b,
                        float* __restrict__ c, int m, int n, int k) {
  __shared__ __align__(16) Stage stages[2];
  ladder::AsyncCopies copies;
  int x = threadIdx.x % kX, y = threadIdx.x / kX;
  int first_row = blockIdx.y * kM, first_column = blockIdx.x * kN;
  float sum[kFours * 4][kFours * 4] = {};
  // Prologue.
  start_copies<wide>(copies, stages[0], a, b, first_row, first_column, 0, m, n, k);
  int read_stage = 0;
  for (int begin = 0; begin < k; begin += kK, read_stage ^= 1) {
    copies.wait<0>();
    // This step's tiles are complete, and no thread still reads the previous step's.
    __syncthreads();
    if (begin + kK < k) {
      start_copies<wide>(copies, stages[read_stage ^ 1], a, b, first_row, first_column,
                         begin + kK, m, n, k);
    }
    const Stage& stage = stages[read_stage];
#pragma unroll
    for (int i = 0; i < kK; ++i) {
      Four of_a[kFours], of_b[kFours];
      for (int f = 0; f < kFours; ++f) {
        of_a[f] = Four::load(&stage.a[i][4 * (y + f * kY)], 0);
        of_b[f] = Four::load(&stage.b[i][4 * (x + f * kX)], 0);
      }
      for (int r = 0; r < 4 * kFours; ++r) {
        for (int s = 0; s < 4 * kFours; ++s)
          sum[r][s] += of_a[r / 4].at[r % 4] * of_b[s / 4].at[s % 4];
      }
    }
  }
  // Epilogue.
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

Tensor matmul_async(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, float* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    ladder::tiles_in_grid(size, kM, kN, kK);  // the kernel counts with int
    dim3 blocks = ladder::matmul_grid(ceil_div(size.n, kN), ceil_div(size.m, kM), "a");
    ladder::with_widest_fours(a.data, b.data, c, size, [&](auto wide) {
      matmul_async_kernel<wide.value>
          <<<blocks, kThreads, 0, stream>>>(a.data, b.data, c, size.m, size.n, size.k);
    });
  };
  return ladder::matmul<float>(a, b, ladder::Layout::row_major, launch);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_async(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_async(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_async", TORCH_BOX(&matmul_async));
}
