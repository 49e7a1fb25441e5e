// 08_warp_tile.cu: the last rung in float32. Tiles for warps, a ring of stages, and
// sizes found by measuring.
//
// What it adds, one change per rung; all are the kernel below, with one argument
// changed:
//
//   matmul_warp_compact  a warp has a compact tile of c, 32 x 64. Per index along k its
//                        lanes read 32 elements of a and 64 of b, where 2 rows of 16
//                        threads read 16 and 128
//   matmul_warp_ring     4 pairs of tiles in shared memory: a copy starts 3 steps
//                        before its tiles are multiplied
//   matmul_warp_long     16 along k per step, not 8: half as many barriers
//   matmul_warp_ahead    the elements for the next i are read before those for this i
//                        are multiplied
//   matmul_warp_tile     blocks take tiles of c in groups of kGroup rows, column by
//                        column: blocks that run together share rows of a and columns
//                        of b in the L2 cache
//
// All sizes are parameters. matmul_warp_tile uses the best choice;
// matmul_warp_tile_with takes the number of a choice, for measuring.
//
// What limits it: the FP32 units. All but a few percent of the instructions are
// multiplications. 09_wmma.cu turns to other units, and to 16-bit types.
//
// On an H200 it has 94% of cuBLAS's speed at 4096 x 4096 x 4096, float32.
//   a, b   row-major, any size; float32. If the columns are not a multiple of 4, or a
//          matrix does not begin at a multiple of 16 bytes, its elements are copied one
//          by one

#include <torch/csrc/stable/library.h>

#include <algorithm>

#include "async_copy.h"
#include "matmul.h"

using ladder::ceil_div;
using ladder::Four;
using torch::stable::Tensor;

// Sizes of a block's tile of c and of a step along k, of a warp's tile, of a thread's;
// the number of pairs of tiles; rows of tiles in a group; whether the next elements are
// read ahead.
template <int m, int n, int k, int warp_m, int warp_n, int thread_m, int thread_n,
          int stages, int group = 8, bool ahead = true>
struct Tile {
  static constexpr int kM = m, kN = n, kK = k, kWarpM = warp_m, kWarpN = warp_n,
                       kThreadM = thread_m, kThreadN = thread_n, kStages = stages,
                       kGroup = group;
  static constexpr bool kAhead = ahead;
  static constexpr int kLanesN = warp_n / thread_n, kLanesM = warp_m / thread_m,
                       kWarpsN = n / warp_n;
  static constexpr int kThreads = m / warp_m * kWarpsN * 32;
  // By registers.
  static constexpr int kBlocks = thread_m * thread_n > 64 ? 1 : 65536 / 128 / kThreads;
  static_assert(m % warp_m == 0 && n % warp_n == 0,
                "the warps' tiles make up their block's tile");
  static_assert(warp_m % thread_m == 0 && warp_n % thread_n == 0,
                "the threads' tiles make up their warp's tile");
  static_assert(kLanesM * kLanesN == 32,
                "a warp's tile has one thread's tile per lane");
  static_assert(thread_m % 4 == 0 && thread_n % 4 == 0,
                "a thread reads its rows and columns four at a time");
  static_assert(k % 8 == 0, "lanes copy 8 neighbours along k");
  static_assert(m * k % kThreads == 0 && k * n % (4 * kThreads) == 0,
                "every thread copies the same number of elements");
  static_assert(m % (kThreads / 8) == 0,
                "a block copies whole columns of a, 8 at a time");
  static_assert(kThreads <= 1024, "a block has at most 1,024 threads");
  static_assert(stages >= 2, "one pair of tiles is multiplied while another is filled");

  struct Stage {
    float a[k][m + 4];  // transposed
    float b[k][n];
  };
};

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

struct TileOrigin {
  int row, column;  // where a block's tile of c begins
};

template <typename T>
__device__ TileOrigin tile_of_block(int m, int n) {
  int tile_rows = (m + T::kM - 1) / T::kM, tile_columns = (n + T::kN - 1) / T::kN;
  int first = blockIdx.x / (T::kGroup * tile_columns) * T::kGroup,
      within = blockIdx.x - first * tile_columns;
  int rows = tile_rows - first < T::kGroup ? tile_rows - first : T::kGroup;
  return {(first + within % rows) * T::kM, within / rows * T::kN};
}

// A thread's copies. It keeps pointers and 32-bit distances to the matrices' ends:
// instructions for addresses and guards take the place of multiplications.
template <typename T, bool wide>
struct Copier {
  // Elements of b per copy; copies per row.
  static constexpr int kEach = wide ? 4 : 1, kAcross = T::kN / kEach;
  // Rows that the block copies at once.
  static constexpr int kRowsA = T::kThreads / 8, kRowsB = T::kThreads / kAcross;
  static_assert(kRowsB * kAcross == T::kThreads, "a block copies whole rows of b");

  ladder::AsyncCopies copies;
  // The first elements that this thread copies in the next step.
  const float *from_a, *from_b;
  int k, n;
  int a_row, a_column, b_row, b_column;  // in the tiles
  int rows_left, k_left, columns_left;   // from there to the ends of a and b

  __device__ Copier(const float* a, const float* b, TileOrigin origin, int m, int n,
                    int k)
      : k(k), n(n) {
    a_row = threadIdx.x / 8;  // 4 rows of 8 elements per warp
    a_column = threadIdx.x % 8;
    b_row = threadIdx.x / kAcross;
    b_column = threadIdx.x % kAcross * kEach;
    from_a = a + int64_t(origin.row + a_row) * k + a_column;
    from_b = b + int64_t(b_row) * n + origin.column + b_column;
    rows_left = m - origin.row - a_row;
    k_left = k;
    columns_left = n - origin.column - b_column;
  }

  // Starts the copies of a step, if there is one, and goes on to the next.
  __device__ void start(typename T::Stage& stage) {
    if (k_left > 0) {
#pragma unroll
      for (int column = 0; column < T::kK; column += 8) {
        int rows = a_column + column < k_left ? rows_left : 0;
#pragma unroll
        for (int row = 0; row < T::kM; row += kRowsA) {
          const float* from = from_a + int64_t(row) * k + column;
          copies.start<4>(&stage.a[a_column + column][a_row + row], from, row < rows);
        }
      }
      int rows = columns_left > 0 ? k_left - b_row : 0;
#pragma unroll
      for (int row = 0; row < T::kK; row += kRowsB) {
        copies.start<4 * kEach>(&stage.b[b_row + row][b_column],
                                from_b + int64_t(row) * n, row < rows);
      }
    }
    copies.commit();  // even if it is empty, so that each step has a group
    from_a += T::kK;
    from_b += int64_t(T::kK) * n;
    k_left -= T::kK;
  }
};

// The elements that a thread multiplies in one step along k. Its rows and columns come
// in fours; neighbouring fours belong to neighbouring lanes.
template <typename T>
struct Fragments {
  Four a[T::kThreadM / 4], b[T::kThreadN / 4];

  __device__ void read(const typename T::Stage& stage, int i, int row, int column) {
#pragma unroll
    for (int f = 0; f < T::kThreadM / 4; ++f)
      a[f] = Four::load(&stage.a[i][row + f * 4 * T::kLanesM], 0);
#pragma unroll
    for (int f = 0; f < T::kThreadN / 4; ++f)
      b[f] = Four::load(&stage.b[i][column + f * 4 * T::kLanesN], 0);
  }

  __device__ void multiply(float (&sum)[T::kThreadM][T::kThreadN]) const {
#pragma unroll
    for (int r = 0; r < T::kThreadM; ++r) {
#pragma unroll
      for (int s = 0; s < T::kThreadN; ++s)
        sum[r][s] += a[r / 4].at[r % 4] * b[s / 4].at[s % 4];
    }
  }
};

template <typename T, bool wide>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    matmul_warp_tile_kernel(const float* __restrict__ a, const float* __restrict__ b,
                            float* __restrict__ c, int m, int n, int k) {
  extern __shared__ __align__(16) char memory[];
  auto stages = reinterpret_cast<typename T::Stage*>(memory);
  TileOrigin origin = tile_of_block<T>(m, n);
  Copier<T, wide> copier(a, b, origin, m, n, k);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // The thread's first four, within the tile.
  int row = warp / T::kWarpsN * T::kWarpM + lane / T::kLanesN * 4;
  int column = warp % T::kWarpsN * T::kWarpN + lane % T::kLanesN * 4;
  float sum[T::kThreadM][T::kThreadN] = {};

  // Prologue: the first stages are in flight before the loop begins.
  for (int stage = 0; stage < T::kStages - 1; ++stage) copier.start(stages[stage]);
  int read_stage = 0, write_stage = T::kStages - 1;  // to multiply, and to fill
  for (int begin = 0; begin < k; begin += T::kK) {
    copier.copies.template wait<T::kStages - 2>();
    // This step's tiles are complete, and no thread still reads the previous step's.
    __syncthreads();
    copier.start(stages[write_stage]);
    Fragments<T> fragments[2];
    if (T::kAhead) fragments[0].read(stages[read_stage], 0, row, column);
#pragma unroll
    for (int i = 0; i < T::kK; ++i) {
      if (!T::kAhead) fragments[i % 2].read(stages[read_stage], i, row, column);
      if (T::kAhead && i + 1 < T::kK)
        fragments[(i + 1) % 2].read(stages[read_stage], i + 1, row, column);
      fragments[i % 2].multiply(sum);
    }
    write_stage = read_stage;
    read_stage = read_stage + 1 == T::kStages ? 0 : read_stage + 1;
  }

  // Epilogue.
#pragma unroll
  for (int r = 0; r < T::kThreadM; ++r) {
#pragma unroll
    for (int f = 0; f < T::kThreadN / 4; ++f) {
      Four four = {
          {sum[r][4 * f], sum[r][4 * f + 1], sum[r][4 * f + 2], sum[r][4 * f + 3]}};
      ladder::store_four<wide>(four, c,
                               origin.row + row + r / 4 * 4 * T::kLanesM + r % 4,
                               origin.column + column + f * 4 * T::kLanesN, m, n);
    }
  }
}

// -------------------------------------------------------------------------------------
// Launchers

// region tiles
// The choices, by number.   m    n   k  warp    thread  stages
using Tile0 = Tile<128, 128, 8, 64, 32, 8, 8, 4>;
using Tile1 = Tile<128, 128, 16, 64, 32, 8, 8, 3>;
using Tile2 = Tile<128, 128, 16, 32, 64, 8, 8, 4>;
using Tile3 = Tile<128, 256, 8, 64, 64, 16, 8, 4>;
using Tile4 = Tile<256, 128, 8, 64, 64, 8, 16, 4>;
using Tile5 = Tile<256, 128, 16, 64, 64, 8, 16, 3>;
using Tile6 = Tile<64, 64, 16, 32, 32, 8, 4, 4>;
constexpr int kTiles = 7, kBest = 2;  // on an H200, at 4096 x 4096 x 4096

// The way there, from 07_async.cu.                       group, ahead
using Compact = Tile<128, 128, 8, 32, 64, 8, 8, 2, 1, false>;
using Ring = Tile<128, 128, 8, 32, 64, 8, 8, 4, 1, false>;
using Long = Tile<128, 128, 16, 32, 64, 8, 8, 4, 1, false>;
using Ahead = Tile<128, 128, 16, 32, 64, 8, 8, 4, 1, true>;
// endregion

template <typename T>
void launch_tile(const float* a, const float* b, float* c, ladder::MatmulSizes size,
                 cudaStream_t stream) {
  constexpr int bytes = T::kStages * sizeof(typename T::Stage);
  int64_t blocks = ladder::tiles_in_grid(size, T::kM, T::kN, T::kK);
  ladder::with_widest_fours(a, b, c, size, [&](auto wide) {
    STD_CUDA_CHECK(cudaFuncSetAttribute(matmul_warp_tile_kernel<T, wide.value>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        bytes));
    matmul_warp_tile_kernel<T, wide.value>
        <<<blocks, T::kThreads, bytes, stream>>>(a, b, c, size.m, size.n, size.k);
  });
}

Tensor matmul_warp_tile_with(const Tensor& a, const Tensor& b, int64_t tile) {
  STD_TORCH_CHECK(0 <= tile && tile < kTiles, "tile must be 0 to ", kTiles - 1,
                  ", the number of a choice, got ", tile);
  auto launch = [&](auto a, auto b, float* c, ladder::MatmulSizes size,
                    cudaStream_t stream) {
    constexpr decltype(&launch_tile<Tile0>) launchers[kTiles] = {
        launch_tile<Tile0>, launch_tile<Tile1>, launch_tile<Tile2>, launch_tile<Tile3>,
        launch_tile<Tile4>, launch_tile<Tile5>, launch_tile<Tile6>};
    launchers[tile](a.data, b.data, c, size, stream);
  };
  return ladder::matmul<float>(a, b, ladder::Layout::row_major, launch);
}

template <typename T>
Tensor matmul_warp(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, float* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    launch_tile<T>(a.data, b.data, c, size, stream);
  };
  return ladder::matmul<float>(a, b, ladder::Layout::row_major, launch);
}

// kBest takes 65 KiB of shared memory, 1 more than a block has on compute capability
// 7.5; choice 1 has a stage less.
Tensor matmul_warp_tile(const Tensor& a, const Tensor& b) {
  int device = 0, most = 0;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  STD_CUDA_CHECK(
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return matmul_warp_tile_with(
      a, b, most < Tile2::kStages * int(sizeof(Tile2::Stage)) ? 1 : kBest);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_warp_tile(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_warp_compact(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_warp_ring(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_warp_long(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_warp_ahead(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_warp_tile(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_warp_tile_with(Tensor a, Tensor b, int tile) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_warp_compact", TORCH_BOX(&matmul_warp<Compact>));
  m.impl("matmul_warp_ring", TORCH_BOX(&matmul_warp<Ring>));
  m.impl("matmul_warp_long", TORCH_BOX(&matmul_warp<Long>));
  m.impl("matmul_warp_ahead", TORCH_BOX(&matmul_warp<Ahead>));
  m.impl("matmul_warp_tile", TORCH_BOX(&matmul_warp_tile));
  m.impl("matmul_warp_tile_with", TORCH_BOX(&matmul_warp_tile_with));
}
