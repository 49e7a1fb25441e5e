// 09_wmma.cu: c = a @ b on the tensor cores, through CUDA's own interface to them,
// nvcuda::wmma.
//
// What it adds: 16-bit types, and units that multiply two matrices of 16 x 16 for a
// warp: 4,096 multiplications in one call, each exact, added up in float. A fragment is
// such a matrix, spread over the registers of the warp's lanes.
//
// A block computes a tile of c of 128 x 128, a warp a tile of 32 x 64: 2 x 4 fragments,
// 64 registers per thread. Rows of the tiles in shared memory have 8 unused elements,
// so that neighbouring rows begin 16 bytes apart among the banks.
//
// What limits it: waiting. The threads copy through registers, wait, multiply, wait, as
// in 03_tiled.cu. And wmma decides how fragments are read; padding helps only so far.
// 10_fragments.cu controls both itself.
//
// On an H200 it has 20% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
//   a, b   row-major, any size; float16 or bfloat16. If the columns are not a multiple
//          of 8, or a matrix does not begin at a multiple of 16 bytes, its elements are
//          copied one by one
//
// Needs compute capability 8.0: older tensor cores do not support bfloat16.

#include <torch/csrc/stable/library.h>

#include <mma.h>

#include "matmul.h"
#include "narrow.h"

namespace wmma = nvcuda::wmma;
using ladder::Eight;
using torch::stable::Tensor;

// a block's tile of c; elements along k in a step.
constexpr int kM = 128, kN = 128, kK = 32;
constexpr int kWarpM = 32, kWarpN = 64;  // a warp's tile of c
constexpr int kWarpsN = kN / kWarpN, kThreads = kM / kWarpM * kWarpsN * 32;
[[maybe_unused]] constexpr int kPadding = 8;
static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kK % 16 == 0,
              "tiles are made of fragments of 16 x 16");
static_assert(kM * kK % (8 * kThreads) == 0 && kK * kN % (8 * kThreads) == 0,
              "every thread copies the same number of elements");

// -------------------------------------------------------------------------------------
// Kernel. a: m x k, b: k x n, c: m x n in row-major order.

// Copies the tile that begins at (row, column); zeros outside the matrix.
template <bool wide, typename T, int tile_rows, int pitch>
__device__ void copy_tile(T (&tile)[tile_rows][pitch], const T* from, int row,
                          int column, int rows, int columns) {
  constexpr int across = (pitch - kPadding) / 8;
#pragma unroll
  for (int j = 0; j < tile_rows * across / kThreads; ++j) {
    int i = j * kThreads + threadIdx.x;
    int x = i % across * 8, y = i / across;
    ladder::copy_eight<wide>(&tile[y][x], from, row + y, column + x, rows, columns);
  }
}

template <bool wide, typename T>
__global__ void __launch_bounds__(kThreads, 2)
    matmul_wmma_kernel(const T* __restrict__ a, const T* __restrict__ b,
                       T* __restrict__ c, int m, int n, int k) {
// Built for older GPUs, it does nothing.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  __shared__ __align__(32) T tile_a[kM][kK + kPadding], tile_b[kK][kN + kPadding];
  __shared__ __align__(32) float results[kThreads / 32][16][16];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp / kWarpsN * kWarpM,
      column = warp % kWarpsN * kWarpN;
  int first_row = blockIdx.y * kM, first_column = blockIdx.x * kN;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[kWarpM / 16][kWarpN / 16];
  for (auto& sums_of_row : sums) {
    for (auto& sum : sums_of_row) wmma::fill_fragment(sum, 0.0f);
  }
  for (int begin = 0; begin < k; begin += kK) {
    copy_tile<wide>(tile_a, a, first_row, begin, m, k);
    copy_tile<wide>(tile_b, b, begin, first_column, k, n);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int i = 0; i < kK; i += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> of_a[kWarpM / 16];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> of_b;
      for (int r = 0; r < kWarpM / 16; ++r)
        wmma::load_matrix_sync(of_a[r], &tile_a[row + 16 * r][i], kK + kPadding);
      for (int s = 0; s < kWarpN / 16; ++s) {
        wmma::load_matrix_sync(of_b, &tile_b[i][column + 16 * s], kN + kPadding);
        for (int r = 0; r < kWarpM / 16; ++r)
          wmma::mma_sync(sums[r][s], of_a[r], of_b, sums[r][s]);
      }
    }
    __syncthreads();  // no thread reads them any more
  }
  // Which lane holds which element of a fragment is not documented, so fragments are
  // written through shared memory.
#pragma unroll
  for (int r = 0; r < kWarpM / 16; ++r) {
#pragma unroll
    for (int s = 0; s < kWarpN / 16; ++s) {
      wmma::store_matrix_sync(&results[warp][0][0], sums[r][s], 16,
                              wmma::mem_row_major);
      __syncwarp();
      Eight<T> eight;
      for (int i = 0; i < 8; ++i)
        eight.at[i] = ladder::narrowed<T>(results[warp][lane / 2][lane % 2 * 8 + i]);
      ladder::store_eight<wide>(eight, c, first_row + row + 16 * r + lane / 2,
                                first_column + column + 16 * s + lane % 2 * 8, m, n);
      __syncwarp();  // no thread reads it any more
    }
  }
#endif
}

// -------------------------------------------------------------------------------------
// Launcher

Tensor matmul_wmma(const Tensor& a, const Tensor& b) {
  auto launch = [](auto a, auto b, auto* c, ladder::MatmulSizes size,
                   cudaStream_t stream) {
    using T = ladder::Device<std::remove_pointer_t<decltype(c)>>;
    ladder::check_tensor_cores();
    ladder::tiles_in_grid(size, kM, kN, kK);  // the kernel counts with int
    dim3 blocks = ladder::matmul_grid(ladder::ceil_div(size.n, kN),
                                      ladder::ceil_div(size.m, kM), "a");
    ladder::with_widest_eights(a.data, b.data, c, size, [&](auto wide) {
      matmul_wmma_kernel<wide.value><<<blocks, kThreads, 0, stream>>>(
          reinterpret_cast<const T*>(a.data), reinterpret_cast<const T*>(b.data),
          reinterpret_cast<T*>(c), size.m, size.n, size.k);
    });
  };
  return ladder::matmul<ladder::Half, ladder::BFloat16>(a, b, ladder::Layout::row_major,
                                                        launch);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_wmma(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_wmma(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_wmma", TORCH_BOX(&matmul_wmma));
}
