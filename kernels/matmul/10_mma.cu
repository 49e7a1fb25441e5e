// 10_mma.cu: c = a @ b on the tensor cores through their own instructions, ldmatrix and
// mma.sync.
//
// What it adds to 10_fragments.cu: the next matrices are read from shared memory before
// these are multiplied, across stages too, and copies start between multiplications:
// the tensor cores stay busy across a barrier.
//
// All sizes are parameters, and the best are found by measuring. So is the epilogue,
// which may change the sums before they are rounded. Here it does nothing; a file that
// includes this one, with LADDER_NO_OPERATORS defined, can bring its own.
//
// What limits it: mma.sync itself. On Hopper it reaches little more than half the speed
// of its successor wgmma, which reads its factors from shared memory and needs no
// registers for them: 11_wgmma.cu.
//
// On an H200 it has 58% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
//   a, b   row-major, any size; float16 or bfloat16. If the columns are not a multiple
//          of 8, or a matrix does not begin at a multiple of 16 bytes, its elements are
//          copied one by one
//
// Needs compute capability 8.0.

#include <torch/csrc/stable/library.h>

#include "async_copy.h"
#include "fragments.h"
#include "matmul.h"
#include "mma_sync.h"
#include "narrow.h"

using ladder::swizzled;
using torch::stable::Tensor;

constexpr int kGroup = 8;  // rows of tiles

// Sizes of a block's tile of c and of a stage along k, of a warp's tile; the number of
// stages.
template <int m, int n, int k, int warp_m, int warp_n, int stages>
struct Tile {
  static constexpr int kM = m, kN = n, kK = k, kWarpM = warp_m, kWarpN = warp_n,
                       kStages = stages;
  static constexpr int kWarpsN = n / warp_n, kThreads = m / warp_m * kWarpsN * 32;
  static constexpr int kSteps = k / 16;  // a step multiplies 16 along k
  // Copies start in parts, one in each step but the last.
  static constexpr int kParts = kSteps - 1;
  static_assert(m % warp_m == 0 && n % warp_n == 0,
                "the warps' tiles make up their block's tile");
  static_assert(warp_m % 16 == 0 && warp_n % 16 == 0,
                "a warp multiplies 16 x 16 by 16 x 16 elements");
  static_assert(k % 32 == 0,
                "an even number of steps: two sets of fragments alternate");
  static_assert(k * 2 == 64 || k * 2 % 128 == 0,
                "rows of a fill lines of 128 bytes, or halves");
  static_assert(n * 2 % 128 == 0, "rows of b fill lines of 128 bytes");
  static_assert(m * k % (8 * kThreads) == 0 && k * n % (8 * kThreads) == 0,
                "every thread copies the same number of elements");
  static_assert(stages >= 2, "one stage is multiplied while another is filled");

  template <typename T>
  struct Stage {
    T a[m * k], b[k * n];  // row-major and swizzled
  };
};

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

// Starts part number `part` of the copies of a tile of tile_rows x width elements that
// begins at (row, column); zeros outside the matrix.
template <typename S, bool wide, int tile_rows, int width, typename T>
__device__ void start_copies(ladder::AsyncCopies& copies, int part, T* tile,
                             const T* from, int row, int column, int rows,
                             int columns) {
  constexpr int count = tile_rows * width / (8 * S::kThreads);  // per thread
  constexpr int apart = 8 * S::kThreads / width;                // rows between them
  int first = threadIdx.x * 8 / width, x = column + threadIdx.x * 8 % width;
  const T* at = from + int64_t(row + first) * columns + x;
#pragma unroll(wide ? 16 : 1)
  for (int j = part * count / S::kParts; j < (part + 1) * count / S::kParts; ++j) {
    int y = row + first + j * apart;
    T* to = &tile[swizzled<width>(first + j * apart, threadIdx.x * 8 % width)];
    if constexpr (wide) {
      copies.start<16>(to, at + int64_t(j * apart) * columns, y < rows && x < columns);
    } else {
      ladder::copy_eight<false>(to, from, y, x, rows, columns);
    }
  }
}

// The matrices that a warp multiplies for 16 along k.
template <typename S>
struct Fragments {
  uint32_t a[S::kWarpM / 16][4], b[S::kWarpN / 16][4];

  // From row `row` of a's tile, column `column` of b's tile, and index i along k.
  template <typename T>
  __device__ void read(const typename S::template Stage<T>& stage, int row, int column,
                       int i) {
    int line = threadIdx.x % 16, half = threadIdx.x % 32 / 16 * 8;
#pragma unroll
    for (int r = 0; r < S::kWarpM / 16; ++r) {
      ladder::load_matrices(a[r],
                            &stage.a[swizzled<S::kK>(row + 16 * r + line, i + half)]);
    }
#pragma unroll
    for (int s = 0; s < S::kWarpN / 16; ++s) {
      ladder::load_transposed(
          b[s], &stage.b[swizzled<S::kN>(i + line, column + 16 * s + half)]);
    }
  }

  template <typename T>
  __device__ void multiply(float (&sum)[S::kWarpM / 16][S::kWarpN / 8][4]) const {
#pragma unroll
    for (int r = 0; r < S::kWarpM / 16; ++r) {
#pragma unroll
      for (int s = 0; s < S::kWarpN / 8; ++s) {
        ladder::multiply_add<T>(sum[r][s], a[r], b[s / 2][s % 2 * 2],
                                b[s / 2][s % 2 * 2 + 1]);
      }
    }
  }
};

// The epilogue that changes nothing. Another one can change the sums before they are
// rounded: sum[r][s][2 * i + j] belongs to column + 8 * s + j.
struct Identity {
  template <int rows, int columns>
  __device__ void apply(float (&)[rows][columns][4], int, int) const {}
};

template <typename S, bool wide, typename T, typename Epilogue>
__global__ void __launch_bounds__(S::kThreads)
    matmul_mma_kernel(const T* __restrict__ a, const T* __restrict__ b,
                      T* __restrict__ c, int m, int n, int k, Epilogue epilogue) {
  extern __shared__ __align__(128) char memory[];
  auto stages = reinterpret_cast<typename S::template Stage<T>*>(memory);
  ladder::AsyncCopies copies;
  int tile_rows = (m + S::kM - 1) / S::kM, tile_columns = (n + S::kN - 1) / S::kN;
  int group = blockIdx.x / (kGroup * tile_columns) * kGroup,
      within = blockIdx.x - group * tile_columns;
  int rows = tile_rows - group < kGroup ? tile_rows - group : kGroup;
  int first_row = (group + within % rows) * S::kM, first_column = within / rows * S::kN;
  int warp = threadIdx.x / 32;
  // Within the tile.
  int row = warp / S::kWarpsN * S::kWarpM, column = warp % S::kWarpsN * S::kWarpN;
  float sum[S::kWarpM / 16][S::kWarpN / 8][4] = {};

  auto fill = [&](int stage, int begin, int part) {
    if (begin >= k) return;
    start_copies<S, wide, S::kM, S::kK>(copies, part, stages[stage].a, a, first_row,
                                        begin, m, k);
    start_copies<S, wide, S::kK, S::kN>(copies, part, stages[stage].b, b, begin,
                                        first_column, k, n);
  };
  // Each stage has a group of copies, even an empty one: then all but the latest
  // kStages - 2 groups have arrived.
  auto wait_for_next_stage = [&] {
    copies.commit();
    copies.wait<S::kStages - 2>();
    __syncthreads();
  };
  // Prologue: the first stages are in flight before the loop begins.
  for (int stage = 0; stage < S::kStages - 1; ++stage) {
    if (stage > 0) copies.commit();
    for (int part = 0; part < S::kParts; ++part) fill(stage, stage * S::kK, part);
  }
  wait_for_next_stage();
  int read_stage = 0, write_stage = S::kStages - 1;  // to multiply, and to fill
  Fragments<S> fragments[2];
  if (k > 0) fragments[0].template read<T>(stages[read_stage], row, column, 0);
  for (int begin = 0; begin < k; begin += S::kK) {
#pragma unroll
    for (int step = 0; step < S::kSteps; ++step) {
      bool last = step + 1 == S::kSteps;
      if (last) {  // all threads have read this stage: from now on it may be filled
        wait_for_next_stage();
        write_stage = read_stage;
        read_stage = read_stage + 1 == S::kStages ? 0 : read_stage + 1;
      }
      if (!last || begin + S::kK < k) {
        fragments[(step + 1) % 2].template read<T>(stages[read_stage], row, column,
                                                   last ? 0 : 16 * (step + 1));
      }
      if (!last) fill(write_stage, begin + (S::kStages - 1) * S::kK, step);
      fragments[step % 2].template multiply<T>(sum);
    }
  }

  epilogue.apply(sum, first_column + column + threadIdx.x % 4 * 2, n);
  ladder::write_sums<wide>(c, sum, first_row + row, first_column + column, m, n);
}

// -------------------------------------------------------------------------------------
// Launchers

// region tiles
// The choices, by number.
using Tile0 = Tile<128, 128, 64, 64, 32, 3>;
using Tile1 = Tile<128, 256, 64, 64, 64, 3>;
using Tile2 = Tile<128, 256, 64, 64, 64, 4>;
using Tile3 = Tile<256, 128, 32, 64, 64, 4>;
using Tile4 = Tile<128, 256, 32, 64, 64, 4>;
using Tile5 = Tile<128, 128, 32, 64, 64, 4>;
constexpr int kTiles = 6;
using Best = Tile3;
using Small = Tile5;  // where the best does not fit shared memory
// endregion

template <typename S, typename T, typename Epilogue = Identity>
void launch_tile(const T* a, const T* b, T* c, ladder::MatmulSizes size,
                 cudaStream_t stream, Epilogue epilogue) {
  constexpr int bytes = S::kStages * sizeof(typename S::template Stage<T>);
  int64_t blocks = ladder::tiles_in_grid(size, S::kM, S::kN, S::kStages * S::kK);
  ladder::with_widest_eights(a, b, c, size, [&](auto wide) {
    STD_CUDA_CHECK(cudaFuncSetAttribute(matmul_mma_kernel<S, wide.value, T, Epilogue>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        bytes));
    matmul_mma_kernel<S, wide.value, T, Epilogue>
        <<<blocks, S::kThreads, bytes, stream>>>(a, b, c, size.m, size.n, size.k,
                                                 epilogue);
  });
}

// launch_tile for the best choice that fits the GPU's shared memory.
template <typename T, typename Epilogue = Identity>
auto best_launcher() {
  size_t most = ladder::device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  bool fits = most >= Best::kStages * sizeof(Best::Stage<T>);
  return fits ? launch_tile<Best, T, Epilogue> : launch_tile<Small, T, Epilogue>;
}

#ifndef LADDER_NO_OPERATORS

// tile: the number of a choice, or -1 for the best one that fits the GPU's shared
// memory.
Tensor matmul_mma_with(const Tensor& a, const Tensor& b, int64_t tile) {
  STD_TORCH_CHECK(-1 <= tile && tile < kTiles, "tile must be 0 to ", kTiles - 1,
                  ", the number of a choice, got ", tile);
  auto launch = [&](auto a, auto b, auto* c, ladder::MatmulSizes size,
                    cudaStream_t stream) {
    using T = ladder::Device<std::remove_pointer_t<decltype(c)>>;
    ladder::check_tensor_cores();
    constexpr decltype(&launch_tile<Tile0, T>) launchers[kTiles] = {
        launch_tile<Tile0, T>, launch_tile<Tile1, T>, launch_tile<Tile2, T>,
        launch_tile<Tile3, T>, launch_tile<Tile4, T>, launch_tile<Tile5, T>};
    auto chosen = tile < 0 ? best_launcher<T>() : launchers[tile];
    chosen(reinterpret_cast<const T*>(a.data), reinterpret_cast<const T*>(b.data),
           reinterpret_cast<T*>(c), size, stream, {});
  };
  return ladder::matmul<ladder::Half, ladder::BFloat16>(a, b, ladder::Layout::row_major,
                                                        launch);
}

Tensor matmul_mma(const Tensor& a, const Tensor& b) {
  return matmul_mma_with(a, b, -1);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_mma(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_mma(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_mma_with(Tensor a, Tensor b, int tile) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_mma", TORCH_BOX(&matmul_mma));
  m.impl("matmul_mma_with", TORCH_BOX(&matmul_mma_with));
}

#endif
