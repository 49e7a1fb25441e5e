// 11_wgmma.cu: c = a @ b in bfloat16 on Hopper's own units: TMA copies the tiles, wgmma
// multiplies them. Three rungs.
//
//   matmul_wgmma_in_turns   wgmma reads its factors from shared memory, not from
//                           registers; TMA copies whole tiles, and no thread computes
//                           an address. One stage: copies and products alternate
//   matmul_wgmma_ring       copies run while products run. One warp group, the
//                           producer, only requests tiles; two others, the consumers,
//                           only multiply. Between them is a ring of stages
//                           (hopper_matmul.h)
//   matmul_wgmma            persistent blocks: one per SM, which computes tile after
//                           tile, so that the producer is a tile ahead while the
//                           consumers are in the epilogue, where they write their
//                           results
//
// A block computes a tile of c of 128 x 256: 64 x 256 for each consumer, 128 registers
// of every thread. For each 64 along k it loads 16 KB of a and 32 KB of b for 2 * 128 *
// 256 * 64 FLOPs: 85 FLOPs per byte, where a 128 x 128 tile has 64. In all three rungs,
// tiles are taken in groups of kGroup rows, column by column: blocks that run together
// share rows of a and columns of b in the L2 cache.
//
// What limits it: the time between tiles.
//
// On an H200 it has 99% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>

#include "hopper_matmul.h"

using hopper::Barrier, hopper::bfloat16, hopper::PipelineState, hopper::Stage,
    hopper::TileMap;
using hopper::kK, hopper::kM, hopper::kN, hopper::kPanel, hopper::kPanels,
    hopper::kThreads, hopper::kWarpGroup;
using ladder::ceil_div, ladder::Tensor;
using Shared = hopper::Ring;

constexpr int kGroup = 16;  // rows of tiles

struct OneStage {
  Stage stage;
  Barrier full;
};

struct Tile {
  int row, column;  // where it begins in c
  __device__ Tile(int number, int tile_rows, int tile_columns) {
    hopper::TileIndex index(number, tile_rows, tile_columns, kGroup);
    row = index.row * kM;
    column = index.column * kN;
  }
};

// -------------------------------------------------------------------------------------
// Kernel

// One thread. Requests the tiles of a stage, which is empty.
__device__ void request(Stage& stage, Barrier& full, const TileMap& a, const TileMap& b,
                        const Tile& tile, int step) {
  hopper::arrive_and_expect(full, sizeof(Stage));
  hopper::load_tile(stage.a, a, full, tile.row, step * kK);
  for (int p = 0; p < kPanels; ++p)
    hopper::load_tile(stage.b[p], b, full, step * kK, tile.column + p * kPanel);
}

// A warp group. Begins to multiply the tiles of a stage. `consumer`, 0 or 1, selects
// its 64 of the tile's rows. add: whether d has sums already.
__device__ __forceinline__ void multiply(float (&d)[128], const Stage& stage,
                                         int consumer, bool add) {
  // The next 16 along k are 32 bytes further in a's swizzled rows, and 16 rows of 128
  // bytes further in b's panels.
  uint64_t a = hopper::descriptor(stage.a[consumer * 64], 16);
  uint64_t b = hopper::descriptor(stage.b, sizeof(stage.b[0]));
  hopper::wgmma_fence();
#pragma unroll
  for (int k = 0; k < kK / 16; ++k) {
    hopper::wgmma_64x256x16(d, a + k * (32 >> 4), b + k * (16 * hopper::kRowBytes >> 4),
                            add || k > 0);
  }
  hopper::wgmma_commit();
}

// -------------------------------------------------------------------------------------
// In turns

// As matmul_wgmma_kernel below, with two warp groups, and one tile of c per block.
__global__ void __launch_bounds__(hopper::kConsumers* kWarpGroup)
    matmul_wgmma_in_turns_kernel(const __grid_constant__ TileMap a,
                                 const __grid_constant__ TileMap b, bfloat16* c, int m,
                                 int n, int tile_rows, int tile_columns, int steps) {
  extern __shared__ __align__(1024) char memory[];
  OneStage& shared = hopper::aligned<OneStage>(memory);
  if (threadIdx.x == 0) {
    hopper::init(shared.full, 1);
    hopper::fence_init();
  }
  __syncthreads();  // no thread waits at the barrier before it is initialised
  Tile tile(blockIdx.x, tile_rows, tile_columns);
  int consumer = threadIdx.x / kWarpGroup;
  float d[128];
  for (int step = 0; step < steps; ++step) {
    if (threadIdx.x == 0) request(shared.stage, shared.full, a, b, tile, step);
    hopper::wait(shared.full, step % 2);
    multiply(d, shared.stage, consumer, step > 0);
    hopper::wgmma_wait_for(d);
    __syncthreads();  // both warp groups have finished with the stage
  }
  hopper::write(d, c, tile.row + consumer * 64, tile.column, m, n);
}

// -------------------------------------------------------------------------------------
// With a ring of stages

// One thread. Requests the tiles of a and b for every k, one tile of c after the other,
// as soon as a stage is empty.
__device__ void produce(Shared& shared, const TileMap& a, const TileMap& b,
                        int tile_rows, int tile_columns, int steps) {
  PipelineState pipe;
  for (int number = blockIdx.x; number < tile_rows * tile_columns;
       number += gridDim.x) {
    Tile tile(number, tile_rows, tile_columns);
    for (int step = 0; step < steps; ++step, pipe.advance()) {
      // At first there is no phase to wait for.
      hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);
      request(shared.stages[pipe.stage], shared.full[pipe.stage], a, b, tile, step);
    }
  }
}

// A warp group. Multiplies the tiles that the producer loads. `consumer`, 0 or 1,
// selects its 64 of the tile's rows.
__device__ void consume(Shared& shared, bfloat16* c, int consumer, int m, int n,
                        int tile_rows, int tile_columns, int steps) {
  PipelineState pipe;
  bool leader = threadIdx.x % kWarpGroup == 0;
  float d[128];
  for (int number = blockIdx.x; number < tile_rows * tile_columns;
       number += gridDim.x) {
    Tile tile(number, tile_rows, tile_columns);
    // `empty` of the stage whose products may still be running.
    Barrier* before = nullptr;
    for (int step = 0; step < steps; ++step, pipe.advance()) {
      hopper::wait(shared.full[pipe.stage], pipe.parity);
      multiply(d, shared.stages[pipe.stage], consumer, step > 0);
      hopper::wgmma_wait<1>();  // the step before has finished with its stage
      if (leader && before) hopper::arrive(*before);
      before = &shared.empty[pipe.stage];
    }
    hopper::wgmma_wait_for(d);
    if (leader && before) hopper::arrive(*before);
    hopper::write(d, c, tile.row + consumer * 64, tile.column, m, n);  // epilogue
  }
}

// a: m x k, b: k x n, c: m x n, all row-major. steps: how many times kK it takes to
// cover k, at least 1.
__global__ void __launch_bounds__(kThreads)
    matmul_wgmma_kernel(const __grid_constant__ TileMap a,
                        const __grid_constant__ TileMap b, bfloat16* c, int m, int n,
                        int tile_rows, int tile_columns, int steps) {
  extern __shared__ __align__(1024) char memory[];
  Shared& shared = hopper::aligned<Shared>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch(a);
    hopper::prefetch(b);
    shared.init(hopper::kConsumers);
    hopper::fence_init();
  }
  __syncthreads();  // no thread waits at a barrier before it is initialised
  hopper::specialize_warps(
      [&] { produce(shared, a, b, tile_rows, tile_columns, steps); },
      [&](int consumer) {
        consume(shared, c, consumer, m, n, tile_rows, tile_columns, steps);
      });
}

// -------------------------------------------------------------------------------------
// Launcher

// blocks(tiles, SMs): how many to launch.
template <typename Shared, typename Kernel, typename Blocks>
Tensor run(const Tensor& a, const Tensor& b, Kernel kernel, int threads,
           Blocks blocks) {
  auto launch = [=](const hopper::Operands& o, int sms, cudaStream_t stream) {
    int64_t tile_rows = ceil_div(o.size.m, kM), tile_columns = ceil_div(o.size.n, kN);
    kernel<<<blocks(tile_rows * tile_columns, sms), threads,
             hopper::kSharedBytes<Shared>, stream>>>(o.a, o.b, o.c, o.size.m, o.size.n,
                                                     tile_rows, tile_columns,
                                                     ceil_div(o.size.k, kK));
  };
  return hopper::matmul<Shared>(a, b, kM, kernel, launch);
}

int64_t one_per_tile(int64_t tiles, int64_t) { return tiles; }
int64_t one_per_sm(int64_t tiles, int64_t sms) { return std::min(tiles, sms); }

Tensor matmul_wgmma_in_turns(const Tensor& a, const Tensor& b) {
  return run<OneStage>(a, b, matmul_wgmma_in_turns_kernel,
                       hopper::kConsumers * kWarpGroup, one_per_tile);
}
Tensor matmul_wgmma_ring(const Tensor& a, const Tensor& b) {
  return run<Shared>(a, b, matmul_wgmma_kernel, kThreads, one_per_tile);
}
Tensor matmul_wgmma(const Tensor& a, const Tensor& b) {
  return run<Shared>(a, b, matmul_wgmma_kernel, kThreads, one_per_sm);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_wgmma(a, b) and so on, for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_wgmma_in_turns(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_wgmma_ring(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_wgmma(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_wgmma_in_turns", TORCH_BOX(&matmul_wgmma_in_turns));
  m.impl("matmul_wgmma_ring", TORCH_BOX(&matmul_wgmma_ring));
  m.impl("matmul_wgmma", TORCH_BOX(&matmul_wgmma));
}
