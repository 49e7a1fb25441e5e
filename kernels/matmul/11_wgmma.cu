// 11_wgmma.cu: c = a @ b in bfloat16 on Hopper's own units: TMA copies the tiles, wgmma multiplies them.
//
// What it adds to mma.sync: wgmma reads its factors from shared memory, not from registers, and runs while the threads
// go on; TMA copies whole tiles, and no thread computes an address. One warp group, the producer, only requests tiles;
// two others, the consumers, only multiply. Between them is a ring of stages in shared memory (hopper_matmul.h).
//
// A block computes a tile of c of 128 x 256: 64 x 256 for each consumer, 128 registers of every thread. For each 64
// along k it loads 16 KB of a and 32 KB of b for 2 * 128 * 256 * 64 FLOPs: 85 FLOPs per byte, where a 128 x 128 tile
// has 64. There is one block per SM, which computes tile after tile, so that the producer is a tile ahead while the
// consumers write their results. Tiles are taken in groups of kGroup rows, column by column: blocks that run together
// share rows of a and columns of b in the L2 cache.
//
// What limits it: the time between tiles.
//
// On an H200 it has 100% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>

#include "hopper_matmul.h"

using hopper::Barrier, hopper::bfloat16, hopper::Place, hopper::Stage, hopper::TileMap;
using hopper::kK, hopper::kM, hopper::kN, hopper::kPanel, hopper::kPanels, hopper::kThreads, hopper::kWarpGroup;
using ladder::ceil_div, ladder::Tensor;
using Shared = hopper::Ring;

constexpr int kGroup = 16;  // rows of tiles

struct Tile {
  int row, column;  // where it begins in c
  __device__ Tile(int number, int tile_rows, int tile_columns) {
    hopper::TileIndex index(number, tile_rows, tile_columns, kGroup);
    row = index.row * kM;
    column = index.column * kN;
  }
};

// ---------------------------------------------------------------------------------------------------------------------
// Kernel

// One thread. Requests the tiles of a and b for every k, one tile of c after the other, as soon as a stage is empty.
__device__ void produce(Shared& shared, const TileMap& a, const TileMap& b, int tile_rows, int tile_columns,
                        int steps) {
  Place place;
  for (int number = blockIdx.x; number < tile_rows * tile_columns; number += gridDim.x) {
    Tile tile(number, tile_rows, tile_columns);
    for (int step = 0; step < steps; ++step, place.advance()) {
      Stage& stage = shared.stages[place.stage];
      Barrier& full = shared.full[place.stage];
      hopper::wait(shared.empty[place.stage], place.parity ^ 1);  // at first there is no phase to wait for
      hopper::arrive_and_expect(full, sizeof(Stage));
      hopper::load_tile(stage.a, a, full, tile.row, step * kK);
      for (int p = 0; p < kPanels; ++p) hopper::load_tile(stage.b[p], b, full, step * kK, tile.column + p * kPanel);
    }
  }
}

// d: this thread's part of 64 rows of c, which begin at `row`, in the order of wgmma_64x256x16: two neighbours of each
// 8 columns.
__device__ void write(const float (&d)[128], bfloat16* c, int row, int column, int m, int n) {
  int t = threadIdx.x % kWarpGroup;
  row += t / 32 * 16 + t % 32 / 4;
  column += ladder::first_of_four();
#pragma unroll
  for (int j = 0; j < 32; j += 2) {  // 8 columns each
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      uint32_t left = ladder::pair<bfloat16>(d[4 * j + 2 * i], d[4 * j + 2 * i + 1]);
      uint32_t right = ladder::pair<bfloat16>(d[4 * j + 4 + 2 * i], d[4 * j + 5 + 2 * i]);
      uint2 four = ladder::four_neighbours(left, right);
      if (row + 8 * i < m && column + 8 * j < n) {
        *reinterpret_cast<uint2*>(&c[int64_t(row + 8 * i) * n + column + 8 * j]) = four;
      }
    }
  }
}

// A warp group. Multiplies the tiles that the producer loads. `which`, 0 or 1, selects its 64 of the tile's rows.
__device__ void consume(Shared& shared, bfloat16* c, int which, int m, int n, int tile_rows, int tile_columns,
                        int steps) {
  Place place;
  bool speaker = threadIdx.x % kWarpGroup == 0;
  float d[128];
  for (int number = blockIdx.x; number < tile_rows * tile_columns; number += gridDim.x) {
    Tile tile(number, tile_rows, tile_columns);
    Barrier* before = nullptr;  // `empty` of the stage whose products may still be running
    for (int step = 0; step < steps; ++step, place.advance()) {
      Stage& stage = shared.stages[place.stage];
      hopper::wait(shared.full[place.stage], place.parity);
      // The next 16 along k are 32 bytes further in a's swizzled rows, and 16 rows of 128 bytes further in b's panels.
      uint64_t a = hopper::descriptor(stage.a[which * 64], 16);
      uint64_t b = hopper::descriptor(stage.b, sizeof(stage.b[0]));
      hopper::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kK / 16; ++k) {
        hopper::wgmma_64x256x16(d, a + k * (32 >> 4), b + k * (16 * hopper::kRowBytes >> 4), step + k > 0);
      }
      hopper::wgmma_commit();
      hopper::wgmma_wait<1>();  // the step before has finished with its stage
      if (speaker && before) hopper::arrive(*before);
      before = &shared.empty[place.stage];
    }
    hopper::wgmma_wait_for(d);
    if (speaker && before) hopper::arrive(*before);
    write(d, c, tile.row + which * 64, tile.column, m, n);
  }
}

// a: m x k, b: k x n, c: m x n, all row-major. steps: how many times kK it takes to cover k, at least 1.
__global__ void __launch_bounds__(kThreads)
    matmul_wgmma_kernel(const __grid_constant__ TileMap a, const __grid_constant__ TileMap b, bfloat16* c, int m, int n,
                        int tile_rows, int tile_columns, int steps) {
  extern __shared__ __align__(1024) char memory[];
  Shared& shared = hopper::aligned<Shared>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch(a);
    hopper::prefetch(b);
    shared.init(hopper::kConsumers);
    hopper::fence_init();
  }
  __syncthreads();  // nobody waits at a barrier before it is initialised
  hopper::split_roles([&] { produce(shared, a, b, tile_rows, tile_columns, steps); },
                      [&](int which) { consume(shared, c, which, m, n, tile_rows, tile_columns, steps); });
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

Tensor matmul_wgmma(const Tensor& a, const Tensor& b) {
  auto launch = [](const hopper::Operands& o, int sms, cudaStream_t stream) {
    int64_t tile_rows = ceil_div(o.size.m, kM), tile_columns = ceil_div(o.size.n, kN);
    int64_t blocks = std::min<int64_t>(tile_rows * tile_columns, sms);
    matmul_wgmma_kernel<<<blocks, kThreads, hopper::kSharedBytes<Shared>, stream>>>(
        o.a, o.b, o.c, o.size.m, o.size.n, tile_rows, tile_columns, ceil_div(o.size.k, kK));
  };
  return hopper::matmul<Shared>(a, b, kM, matmul_wgmma_kernel, launch);
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_wgmma(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("matmul_wgmma(Tensor a, Tensor b) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("matmul_wgmma", TORCH_BOX(&matmul_wgmma)); }
