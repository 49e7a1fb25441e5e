// shared_tile.cu: One tile for two blocks. Exercise 2 of lesson 11, about 20 minutes.
//
// `out[r] = factor[r] * x` for r = 0 and 1. The two blocks of a cluster need the same
// tile of `x`; the block of rank r multiplies it by factor[r]. Each block requests one
// half of the tile, its own rank's kHalf rows, and the request delivers that half to
// both, at the same place; a block expects the bytes of the whole tile. Write what the
// first thread of each block does, and the wait of all threads. `x` must be read once.
//
// Check this file with: python -m helpers check shared_tile
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.
//
// [hints]
// - Both blocks receive each half: bits 0 and 1 of `blocks` are set.
// - A half arrives in every receiving block at the same place within its own `tile`,
//   and counts on that block's own `full`. How many bytes arrive in a block, from both
//   requests together?
// - Element kHalf * kColumns of the tile is the first of its lower half. In x, that
//   half begins kHalf rows further down.
// - full is initialised for one arrival, and its first phase has parity 0.
// [end]

#include <torch/csrc/stable/library.h>

#include "hopper_matmul.h"

using hopper::Barrier;
using hopper::bfloat16;
using hopper::TileMap;
using torch::stable::Tensor;

constexpr int kRows = 16, kHalf = kRows / 2, kColumns = 64, kTile = kRows * kColumns;
constexpr int kBlocks = 2, kThreads = 64;  // of a cluster; of a block

struct Shared {
  bfloat16 tile[kTile];
  Barrier full;
};

// -------------------------------------------------------------------------------------
// Kernel

// All threads of a block. out: the tile's elements times factor, in row-major order.
__device__ void scale(const bfloat16* tile, float factor, bfloat16* out) {
  for (int i = threadIdx.x; i < kTile; i += kThreads) {
    out[i] =
        __float2bfloat16(factor * __bfloat162float(tile[hopper::swizzled(2 * i) / 2]));
  }
}

// [cell]
// All threads of a block whose cluster's tile begins at `row` of x. rank: 0 or 1. x: a
// map of boxes of kHalf rows. tile: room for kRows rows of kColumns elements. full:
// initialised in both blocks, for one arrival. hopper::load_tile_for(blocks, to, x,
// full, row, column) requests a box; bit r of blocks is for the block of rank r.
__device__ void receive(bfloat16* tile, Barrier& full, const TileMap& x, int row,
                        int rank) {
  // [solution: about 5 lines]
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTile * sizeof(bfloat16));
    hopper::load_tile_for(0b11, tile + rank * kHalf * kColumns, x, full,
                          row + rank * kHalf, 0);
  }
  hopper::wait(full, 0);
  // [end]
}
// [end]

__global__ void __cluster_dims__(kBlocks, 1, 1)
    shared_tile_kernel(const __grid_constant__ TileMap x, const float* factor,
                       bfloat16* out, int64_t size) {
  extern __shared__ __align__(1024) char memory[];
  Shared& shared = hopper::aligned<Shared>(memory);
  if (threadIdx.x == 0) {
    hopper::init(shared.full, 1);
    hopper::fence_init();
  }
  // Nothing arrives at a barrier before it is initialised, in either block.
  hopper::cluster_sync();
  int rank = hopper::cluster_rank(), tile = blockIdx.x / kBlocks;
  receive(shared.tile, shared.full, x, tile * kRows, rank);
  scale(shared.tile, factor[rank], out + rank * size + int64_t(tile) * kTile);
  // No block exits while the other's request may still write into it.
  hopper::cluster_sync();
}

// -------------------------------------------------------------------------------------
// Launcher

// x: a matrix of kColumns columns and a multiple of kRows rows; factor: kBlocks floats;
// out: kBlocks matrices like x.
void shared_tile(const Tensor& x, const Tensor& factor, Tensor out) {
  ladder::check_input(x, "x", ladder::ScalarType::BFloat16);
  ladder::check_input(factor, "factor", ladder::ScalarType::Float);
  ladder::check_input(out, "out", ladder::ScalarType::BFloat16);
  STD_TORCH_CHECK(x.dim() == 2 && x.size(1) == kColumns && x.size(0) % kRows == 0,
                  "x must have ", kColumns, " columns and a multiple of ", kRows,
                  " rows, got shape ", ladder::shape_of(x));
  STD_TORCH_CHECK(factor.numel() == kBlocks && out.numel() == kBlocks * x.numel(),
                  "factor must have ", kBlocks,
                  " elements and out twice as many as x, got ", factor.numel(), " and ",
                  out.numel());
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return;
  TileMap map = hopper::tile_map(x.data_ptr(), x.size(0), kColumns, kHalf);
  shared_tile_kernel<<<x.size(0) / kRows * kBlocks, kThreads,
                       hopper::kSharedBytes<Shared>, ladder::current_stream(x)>>>(
      map, factor.const_data_ptr<float>(), static_cast<bfloat16*>(out.data_ptr()),
      x.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("shared_tile(Tensor x, Tensor factor, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("shared_tile", TORCH_BOX(&shared_tile));
}
