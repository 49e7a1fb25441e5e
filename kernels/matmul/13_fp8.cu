// 13_fp8.cu: c = scale_a * scale_b * (a @ b) with factors of 8 bits (e4m3):
// matmul_cluster with twice the products.
//
// A matrix is stored as x / scale, rounded to 4 significant bits; the scale, a float32
// for the whole matrix, is multiplied back into the results. c is bfloat16.
//
// region changes
// Warp roles, ring, cluster, tile scheduler and overlapped epilogue are those of
// matmul_cluster. What 8 bits change:
//
//   - A swizzled row of 128 bytes has 128 elements along k: a stage has the same bytes,
//     and twice the products.
//   - wgmma takes 8-bit factors with k contiguous only. So b is column-major, as
//     torch._scaled_mm takes it, and its tile is stored by columns of 128 bytes,
//     without panels.
//   - TMA moves bytes: to its maps, two neighbours along k are one element of 16 bits.
//   - The sums are scaled when they are rounded to bfloat16.
//   - The tensor cores keep about 14 bits of a sum, not 24 (hopper_fp8.h). cuBLAS does
//     the same if it may: torch._scaled_mm(..., use_fast_accum=True). Otherwise it adds
//     up short sums in float32 outside the tensor cores, in a second set of registers,
//     which this tile has no room for. The fair peer is the fast one.
// endregion
//
// What limits it: power, as matmul_cluster.
//
// On an H200 it has 103% of torch._scaled_mm's speed at 4096 x 4096 x 4096,
// float8_e4m3fn.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>

#include "hopper_cluster.h"
#include "hopper_fp8.h"

using hopper::Barrier, hopper::bfloat16, hopper::PipelineState, hopper::StagingBuffers,
    hopper::TileMap;
using hopper::kBuffers, hopper::kConsumers, hopper::kGroup, hopper::kM, hopper::kN,
    hopper::kPanel, hopper::kPanels, hopper::kStages, hopper::kThreads,
    hopper::kWarpGroup, hopper::kWarpRows, hopper::kWarps;
using ladder::ceil_div, ladder::Tensor;
using Element = uint8_t;  // the bits of an e4m3

constexpr int kK = hopper::kRowBytes;  // elements along k in a stage, a byte each
// Blocks, with tiles of c one below the other: they share tiles of b.
constexpr int kCluster = 2;
constexpr int kShare = kN / kCluster;  // columns of b that each loads for both

struct Stage {
  Element a[kM][kK], b[kN][kK];  // k is contiguous in both
};

static_assert(sizeof(Stage) % 1024 == 0,
              "stages begin where the swizzle's pattern begins");

struct Shared {
  Stage stages[kStages];
  StagingBuffers staging[kWarps];
  Barrier full[kStages], empty[kStages];
};
static_assert(hopper::kSharedBytes<Shared> <= 227 * 1024,
              "a block has at most 227 KB of shared memory");

struct Tile {
  int row, column;  // where it begins in c
};

// The tile scheduler of a persistent block: its cluster computes tiles first, first +
// stride, ..., each kCluster * kM x kN.
struct TileScheduler {
  int rank, first, stride;  // rank: of the block in its cluster
  // Of c, in clusters and in tiles; along k, in steps of kK.
  int cluster_rows, columns, steps;
  __device__ int end() const { return cluster_rows * columns; }
  __device__ Tile tile(int number) const {
    hopper::TileIndex index(number, cluster_rows, columns, kGroup);
    return {(index.row * kCluster + rank) * kM, index.column * kN};
  }
};

// -------------------------------------------------------------------------------------
// Kernel

// One thread. Requests the tiles for every k as soon as a stage is empty in both
// blocks: a's tile for this block, and this block's share of b's tile for both.
__device__ void produce(Shared& shared, const TileMap& a, const TileMap& b,
                        const TileScheduler& scheduler) {
  constexpr uint16_t cluster_mask = (1 << kCluster) - 1;
  int share = scheduler.rank * kShare;
  PipelineState pipe;
  for (int number = scheduler.first; number < scheduler.end();
       number += scheduler.stride) {
    Tile tile = scheduler.tile(number);
    for (int step = 0; step < scheduler.steps; ++step, pipe.advance()) {
      Stage& stage = shared.stages[pipe.stage];
      Barrier& full = shared.full[pipe.stage];
      // At first there is no phase to wait for.
      hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);
      hopper::arrive_and_expect(full, sizeof(Stage));
      hopper::load_tile(stage.a, a, full, tile.row, step * (kK / 2));
      hopper::load_tile_for(cluster_mask, stage.b[share], b, full, tile.column + share,
                            step * (kK / 2));
    }
  }
}

// A warp. Writes panel `p`, 64 columns, of its 16 rows of c, which begin at `row`: to
// shared memory, and from there to c. pairs: the thread's part of a tile, two
// neighbours each, in the order of wgmma_e4m3<256>.
__device__ void store_panel(const __nv_bfloat162 (&pairs)[64], int p,
                            StagingBuffers& staging, const TileMap& c, int row,
                            int column) {
  auto& panel = staging.panels[p % kBuffers];
  int lane = threadIdx.x % 32;
  // TMA has read the panel that was here.
  if (lane == 0) hopper::store_wait<kBuffers - 1>();
  __syncwarp();
#pragma unroll
  for (int j = 0; j < kPanel / 8; ++j) {
    for (int i = 0; i < 2; ++i) {
      uint32_t at = hopper::swizzled((lane / 4 + 8 * i) * hopper::kRowBytes +
                                     (8 * j + lane % 4 * 2) * 2);
      *reinterpret_cast<__nv_bfloat162*>(reinterpret_cast<char*>(panel) + at) =
          pairs[2 * (p * kPanel / 8 + j) + i];
    }
  }
  hopper::fence_before_store();
  __syncwarp();
  if (lane == 0) {
    hopper::store_tile(c, panel, row, column + p * kPanel);
    hopper::store_commit();
  }
}

// A warp group. Multiplies the tiles that the producers load. `consumer`, 0 or 1,
// selects its 64 of the tile's rows. The previous tile waits, rounded, in registers:
// each time that one of the first products has begun, a panel of it is written.
__device__ void consume(Shared& shared, const TileMap& c, const float* scale_a,
                        const float* scale_b, int consumer,
                        const TileScheduler& scheduler) {
  PipelineState pipe;
  int thread = threadIdx.x % kWarpGroup, warp = thread / 32;
  int row = 0, column = 0;  // of the tile that waits in `done`
  int before = -1;          // the stage whose products may still be running
  float d[128];
  __nv_bfloat162 done[64];
  float scale = *scale_a * *scale_b;
  // Begins the products of a stage.
  auto multiply = [&](bool add) {
    Stage& stage = shared.stages[pipe.stage];
    hopper::wait(shared.full[pipe.stage], pipe.parity);
    uint64_t a = hopper::descriptor(stage.a[consumer * 64], 16),
             b = hopper::descriptor(stage.b, 16);
    hopper::wgmma_fence();
    // The next 32 along k are 32 bytes further in the swizzled rows of both.
#pragma unroll
    for (int k = 0; k < kK / 32; ++k)
      hopper::wgmma_e4m3<256>(d, a + k * (32 >> 4), b + k * (32 >> 4), add || k > 0);
    hopper::wgmma_commit();
  };
  // One thread per block of the cluster arrives at that block's barrier: the stage is
  // empty.
  auto release = [&](int stage) {
    if (thread < kCluster) hopper::arrive_at(thread, shared.empty[stage]);
  };
  // Waits for the products of the previous stage, and goes on to the next.
  auto advance = [&] {
    hopper::wgmma_wait<1>();
    if (before >= 0) release(before);
    before = pipe.stage;
    pipe.advance();
  };
  auto store_one = [&](int p) {
    store_panel(done, p, shared.staging[consumer * 4 + warp], c, row, column);
  };
  for (int number = scheduler.first; number < scheduler.end();
       number += scheduler.stride) {
#pragma unroll
    for (int p = 0; p < kPanels; ++p) {
      if (p < scheduler.steps) multiply(p > 0);
      if (number != scheduler.first) store_one(p);
      if (p < scheduler.steps) advance();
    }
    for (int step = kPanels; step < scheduler.steps; ++step) {
      multiply(true);
      advance();
    }
    hopper::wgmma_wait_for(d);
    release(before);
    before = -1;
#pragma unroll
    for (int i = 0; i < 64; ++i)
      done[i] = __floats2bfloat162_rn(scale * d[2 * i], scale * d[2 * i + 1]);
    Tile tile = scheduler.tile(number);
    row = tile.row + consumer * 64 + warp * kWarpRows;
    column = tile.column;
  }
#pragma unroll
  for (int p = 0; p < kPanels; ++p) store_one(p);  // epilogue of the last tile
  hopper::store_wait<0>();  // shared memory must outlive the stores
}

// a: m x k, row-major; b: n x k, row-major, the transpose of the factor; c: m x n,
// row-major. steps: how many times kK it takes to cover k, at least 1.
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    matmul_fp8_kernel(const __grid_constant__ TileMap a,
                      const __grid_constant__ TileMap b,
                      const __grid_constant__ TileMap c, const float* scale_a,
                      const float* scale_b, int cluster_rows, int columns, int steps) {
  extern __shared__ __align__(1024) char memory[];
  Shared& shared = hopper::aligned<Shared>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch(a);
    hopper::prefetch(b);
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::init(shared.full[stage], 1);
      hopper::init(shared.empty[stage], kCluster * kConsumers);
    }
    hopper::fence_init();
  }
  // No thread arrives at a barrier before it is initialised, in either block.
  hopper::cluster_sync();
  TileScheduler scheduler{hopper::cluster_rank(),
                          int(blockIdx.x) / kCluster,
                          int(gridDim.x) / kCluster,
                          cluster_rows,
                          columns,
                          steps};
  hopper::specialize_warps(
      [&] { produce(shared, a, b, scheduler); },
      [&](int consumer) { consume(shared, c, scale_a, scale_b, consumer, scheduler); });
  // No block exits while the other may still write into it or arrive at its barriers.
  hopper::cluster_sync();
}

// -------------------------------------------------------------------------------------
// Launcher

// a: m x k, row-major; b: k x n, column-major, both float8_e4m3fn; the scales: float32,
// one element each. Returns bfloat16, m x n.
Tensor matmul_fp8(const Tensor& a, const Tensor& b, const Tensor& scale_a,
                  const Tensor& scale_b) {
  hopper::Scales scales = hopper::check_scales(a, scale_a, scale_b);
  auto launch = [&](const void* a, const void* b, void* c, ladder::MatmulSizes size,
                    cudaStream_t stream) {
    ladder::tiles_in_grid(size, kCluster * kM, kN, kK);  // the kernel counts with int
    constexpr int bytes = hopper::kSharedBytes<Shared>;
    STD_CUDA_CHECK(cudaFuncSetAttribute(
        matmul_fp8_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    int64_t cluster_rows = ceil_div(size.m, kCluster * kM),
            tile_columns = ceil_div(size.n, kN);
    int sms = ladder::device_attribute(cudaDevAttrMultiProcessorCount);
    int64_t clusters =
        std::min<int64_t>(cluster_rows * tile_columns, std::max(1, sms / kCluster));
    matmul_fp8_kernel<<<clusters * kCluster, kThreads, bytes, stream>>>(
        hopper::tile_map(a, size.m, size.k, kM),
        hopper::tile_map(b, size.n, size.k, kShare),
        hopper::tile_map(c, size.m, size.n, kWarpRows), scales.a, scales.b,
        cluster_rows, tile_columns, ceil_div(size.k, kK / 2));
    STD_CUDA_KERNEL_LAUNCH_CHECK();
  };
  return hopper::matmul_fp8(a, b, launch);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_fp8(a, b, scale_a, scale_b), for
// CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_fp8(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_fp8", TORCH_BOX(&matmul_fp8));
}
