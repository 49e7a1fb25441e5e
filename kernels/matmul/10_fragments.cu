// 10_fragments.cu: c = a @ b by ldmatrix and mma.sync, the tensor cores' own
// instructions: the way from 09_wmma.cu to 10_mma.cu, one change per rung.
//
// All six rungs are the kernel below. Each changes one argument of the one before:
//
//   matmul_mma_padded      the tiles, the padding and the copies of 09_wmma.cu. A warp
//                          reads its fragments by ldmatrix; which lane holds which sum
//                          is documented, so c is written from registers
//   matmul_mma_unswizzled  no padding: the rows of a matrix that ldmatrix reads at once
//                          are in the same banks
//   matmul_mma_swizzled    each row's pieces of 16 bytes change places, so that these
//                          rows are in different banks
//   matmul_mma_ring        four stages in place of one, filled by asynchronous copies
//                          while another is multiplied
//   matmul_mma_tiles       a warp computes 64 x 64 elements, not 32 x 64: a third fewer
//                          reads per multiplication
//   matmul_mma_grouped     blocks take their tiles in groups of 8 rows: those that run
//                          together share rows of a and columns of b in the L2 cache
//
// What limits it: after each barrier the tensor cores wait for the first fragments.
// 10_mma.cu reads them ahead.
//
//   a, b   row-major, any size; float16 or bfloat16. If the columns are not a multiple
//          of 8, or a matrix does not begin at a multiple of 16 bytes, its elements are
//          copied one by one
//
// On an H200 it has 41% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
// Needs compute capability 8.0.

#include <torch/csrc/stable/library.h>

#include "async_copy.h"
#include "fragments.h"
#include "matmul.h"
#include "mma_sync.h"
#include "narrow.h"

using torch::stable::Tensor;

constexpr int kK = 32;  // elements along k in a step
constexpr int kPadding = 8;

enum class Rows { padded, plain, swizzled };  // of a tile in shared memory

// Sizes of a block's tile of c and of a warp's; how rows are stored; stages; rows of
// tiles in a group.
template <int m, int n, int warp_m, int warp_n, Rows rows, int stages, int group>
struct Step {
  static constexpr int kM = m, kN = n, kWarpM = warp_m, kWarpN = warp_n,
                       kStages = stages, kGroup = group;
  static constexpr int kWarpsN = n / warp_n, kThreads = m / warp_m * kWarpsN * 32;
  // Resident on an SM, by registers.
  static constexpr int kBlocks = warp_m * warp_n > 32 * 64 ? 1 : 2;
  static constexpr int kMore = rows == Rows::padded ? kPadding : 0;
  static_assert(m % warp_m == 0 && n % warp_n == 0,
                "the warps' tiles make up their block's tile");
  static_assert(warp_m % 16 == 0 && warp_n % 16 == 0,
                "a warp multiplies 16 x 16 by 16 x 16 elements");
  static_assert(m * kK % (8 * kThreads) == 0 && kK * n % (8 * kThreads) == 0,
                "every thread copies the same number of elements");

  template <typename T>
  struct Stage {
    T a[m * (kK + kMore)], b[kK * (n + kMore)];
  };

  // The index of an element in a tile with rows of `width` elements.
  template <int width>
  static __device__ int at(int row, int column) {
    if constexpr (rows == Rows::swizzled) {
      return ladder::swizzled<width>(row, column);
    } else {
      return row * (width + kMore) + column;
    }
  }
};

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

// Copies the tile of tile_rows x width elements that begins at (row, column); zeros
// outside the matrix. With several stages it only starts the copies.
template <typename S, bool wide, int tile_rows, int width, typename T>
__device__ void copy_tile(ladder::AsyncCopies& copies, T* tile, const T* from, int row,
                          int column, int rows, int columns) {
#pragma unroll
  for (int j = 0; j < tile_rows * width / (8 * S::kThreads); ++j) {
    int i = 8 * (j * S::kThreads + threadIdx.x), y = i / width, x = i % width;
    T* to = &tile[S::template at<width>(y, x)];
    if constexpr (wide && S::kStages > 1) {
      const T* at = from + int64_t(row + y) * columns + column + x;
      copies.start<16>(to, at, row + y < rows && column + x < columns);
    } else {
      ladder::copy_eight<wide>(to, from, row + y, column + x, rows, columns);
    }
  }
}

// Multiplies a stage: adds the products of a warp's rows of a and columns of b, which
// begin at row and column.
template <typename S, typename T>
__device__ void multiply(const typename S::template Stage<T>& stage, int row,
                         int column, float (&sum)[S::kWarpM / 16][S::kWarpN / 8][4]) {
  // The row of a matrix whose address this lane passes.
  int line = threadIdx.x % 16, half = threadIdx.x % 32 / 16 * 8;
#pragma unroll
  for (int i = 0; i < kK; i += 16) {
    uint32_t of_a[S::kWarpM / 16][4], of_b[4];
#pragma unroll
    for (int r = 0; r < S::kWarpM / 16; ++r) {
      ladder::load_matrices(
          of_a[r], &stage.a[S::template at<kK>(row + 16 * r + line, i + half)]);
    }
#pragma unroll
    for (int s = 0; s < S::kWarpN / 16; ++s) {
      ladder::load_transposed(
          of_b, &stage.b[S::template at<S::kN>(i + line, column + 16 * s + half)]);
#pragma unroll
      for (int r = 0; r < S::kWarpM / 16; ++r) {
        ladder::multiply_add<T>(sum[r][2 * s], of_a[r], of_b[0], of_b[1]);
        ladder::multiply_add<T>(sum[r][2 * s + 1], of_a[r], of_b[2], of_b[3]);
      }
    }
  }
}

template <typename S, bool wide, typename T>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    matmul_fragments_kernel(const T* __restrict__ a, const T* __restrict__ b,
                            T* __restrict__ c, int m, int n, int k) {
  extern __shared__ __align__(128) char memory[];
  auto stages = reinterpret_cast<typename S::template Stage<T>*>(memory);
  int tile_rows = (m + S::kM - 1) / S::kM, tile_columns = (n + S::kN - 1) / S::kN;
  int group = blockIdx.x / (S::kGroup * tile_columns) * S::kGroup,
      within = blockIdx.x - group * tile_columns;
  int rows = tile_rows - group < S::kGroup ? tile_rows - group : S::kGroup;
  int first_row = (group + within % rows) * S::kM, first_column = within / rows * S::kN;
  int warp = threadIdx.x / 32;
  // Within the tile.
  int row = warp / S::kWarpsN * S::kWarpM, column = warp % S::kWarpsN * S::kWarpN;
  float sum[S::kWarpM / 16][S::kWarpN / 8][4] = {};

  ladder::AsyncCopies copies;
  auto fill = [&](int stage, int begin) {
    if (begin < k) {
      copy_tile<S, wide, S::kM, kK>(copies, stages[stage].a, a, first_row, begin, m, k);
      copy_tile<S, wide, kK, S::kN>(copies, stages[stage].b, b, begin, first_column, k,
                                    n);
    }
    // Even if it is empty, so that each step has a group.
    if (S::kStages > 1) copies.commit();
  };
  // Prologue: the first stages are in flight before the loop begins.
  for (int stage = 0; stage < S::kStages - 1; ++stage) fill(stage, stage * kK);
  int read_stage = 0, write_stage = S::kStages - 1;  // to multiply, and to fill
  for (int begin = 0; begin < k; begin += kK) {
    if constexpr (S::kStages > 1) {
      copies.template wait<S::kStages - 2>();
      // This stage is complete, and no thread still reads the one before.
      __syncthreads();
    }
    fill(write_stage, begin + (S::kStages - 1) * kK);
    if constexpr (S::kStages == 1) __syncthreads();  // the only stage is complete
    multiply<S, T>(stages[read_stage], row, column, sum);
    if constexpr (S::kStages == 1) __syncthreads();  // no thread reads it any more
    write_stage = read_stage;
    read_stage = read_stage + 1 == S::kStages ? 0 : read_stage + 1;
  }
  // Epilogue.
  ladder::write_sums<wide>(c, sum, first_row + row, first_column + column, m, n);
}

// -------------------------------------------------------------------------------------
// Launchers

// region steps
//                          block     warp    rows            stages, group
using Padded = Step<128, 128, 32, 64, Rows::padded, 1, 1>;
using Unswizzled = Step<128, 128, 32, 64, Rows::plain, 1, 1>;
using Swizzled = Step<128, 128, 32, 64, Rows::swizzled, 1, 1>;
using Ring = Step<128, 128, 32, 64, Rows::swizzled, 4, 1>;
using Tiles = Step<256, 128, 64, 64, Rows::swizzled, 4, 1>;
using Grouped = Step<256, 128, 64, 64, Rows::swizzled, 4, 8>;
// endregion

template <typename S>
Tensor run(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, auto* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    using T = ladder::Device<std::remove_pointer_t<decltype(c)>>;
    ladder::check_tensor_cores();
    constexpr int bytes = S::kStages * sizeof(typename S::template Stage<T>);
    int64_t blocks = ladder::tiles_in_grid(size, S::kM, S::kN, S::kStages * kK);
    ladder::with_widest_eights(a.data, b.data, c, size, [&](auto wide) {
      STD_CUDA_CHECK(cudaFuncSetAttribute(matmul_fragments_kernel<S, wide.value, T>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          bytes));
      matmul_fragments_kernel<S, wide.value><<<blocks, S::kThreads, bytes, stream>>>(
          reinterpret_cast<const T*>(a.data), reinterpret_cast<const T*>(b.data),
          reinterpret_cast<T*>(c), size.m, size.n, size.k);
    });
  };
  return ladder::matmul<ladder::Half, ladder::BFloat16>(a, b, ladder::Layout::row_major,
                                                        launch);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_mma_padded(a, b) and so on, for
// CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_mma_padded(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_mma_unswizzled(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_mma_swizzled(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_mma_ring(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_mma_tiles(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_mma_grouped(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_mma_padded", TORCH_BOX(&run<Padded>));
  m.impl("matmul_mma_unswizzled", TORCH_BOX(&run<Unswizzled>));
  m.impl("matmul_mma_swizzled", TORCH_BOX(&run<Swizzled>));
  m.impl("matmul_mma_ring", TORCH_BOX(&run<Ring>));
  m.impl("matmul_mma_tiles", TORCH_BOX(&run<Tiles>));
  m.impl("matmul_mma_grouped", TORCH_BOX(&run<Grouped>));
}
