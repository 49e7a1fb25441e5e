// 12_cluster.cu: matmul_wgmma with two blocks in a cluster, which share a tile of b, and with TMA for c as well.
//
// What it adds to matmul_wgmma, whose roles, ring and order it keeps:
//
//   A cluster: the two blocks have tiles of c one below the other, so they need the same tiles of b. Each loads half of
//   a tile and the load brings it to both. A block asks the L2 cache for 16 KB of a and 16 KB of b for each 64 of k, not
//   for 16 and 32: 128 FLOPs a byte instead of 85. A stage is empty when the consumers of both blocks have done with it,
//   since either block writes into both: consumers arrive at the other block's barrier too.
//
//   Results go through shared memory: a warp writes 16 x 64 of them as TMA wants them, and one of its lanes asks for
//   the store. Whole lines are written instead of 16 bytes here and there, and no thread computes an address in c. Each
//   warp has a small ring of kBuffers such panels, and no warp waits for another.
//
//   A tile is written while the next one is multiplied. Its sums, rounded to bfloat16, wait in 64 registers beside the
//   128 of the next; a panel goes out each time that the next tile's first products have begun. Tensor cores do not
//   stand still between tiles.
//
// If the last cluster has rows for its first block only, the other works for nothing: TMA loads zeros, stores nothing.
// What limits it: power. The GPU lowers its clock until tensor cores, busy nine tenths of the time, can be fed.
// On an H200 it has 100% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>

#include "hopper.h"
#include "launch.h"

using hopper::Barrier;
using hopper::bfloat16;
using hopper::TileMap;
using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kCluster = 2;                 // blocks
constexpr int kM = 128, kN = 256, kK = 64;  // a block's tile of c; numbers of k in a stage
constexpr int kPanel = 64;                  // columns of b and of c that lie together: 128 bytes
constexpr int kPanels = kN / kPanel;
constexpr int kStages = 4;
constexpr int kGroup = 8;  // rows of clusters
constexpr int kWarpGroup = 128, kConsumers = 2, kThreads = (1 + kConsumers) * kWarpGroup;
constexpr int kWarps = kConsumers * kWarpGroup / 32;
constexpr int kWarpRows = 16;  // that a warp has of a wgmma's 64
constexpr int kBuffers = 2;    // panels of c that a warp may have under way
static_assert(kM == kConsumers * 64, "each consumer has the 64 rows of a wgmma");
static_assert(kK * sizeof(bfloat16) == hopper::kRowBytes, "a row of a stage's tile of a is one swizzled row");
static_assert(kPanels % kCluster == 0, "each block loads as many panels of b");

struct Stage {
  bfloat16 a[kM][kK];               // row-major
  bfloat16 b[kPanels][kK][kPanel];  // row-major within a panel
};
struct Results {
  bfloat16 panels[kBuffers][kWarpRows][kPanel];  // of one warp, row-major
};
static_assert(sizeof(Stage) % 1024 == 0 && sizeof(Results::panels[0]) % 1024 == 0,
              "what TMA reads and writes begins where the swizzle's pattern begins");

struct Shared {
  Stage stages[kStages];
  Results results[kWarps];
  Barrier full[kStages], empty[kStages];
};
constexpr int kSharedBytes = sizeof(Shared) + 1024;  // dynamic shared memory may begin before a multiple of 1,024
static_assert(kSharedBytes <= 227 * 1024, "what a block can have");

// A place in the ring: the stage, and the parity of the phase in which it is used.
struct Place {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

// Which tile of c the block of rank `rank` has when its cluster has number `number`. cluster_rows: c's rows of clusters.
struct Tile {
  int row, column;
  __device__ Tile(int number, int rank, int cluster_rows, int columns) {
    int group = number / (kGroup * columns), first = group * kGroup;
    int rows = cluster_rows - first < kGroup ? cluster_rows - first : kGroup, within = number - first * columns;
    row = ((first + within % rows) * kCluster + rank) * kM;
    column = within / rows * kN;
  }
};

// What a role needs to know: its part of the work.
struct Work {
  int rank, first, stride;           // in the cluster; the first number of its cluster, and from one to the next
  int cluster_rows, columns, steps;  // c in clusters and columns of tiles; steps of kK numbers of k
  __device__ int end() const { return cluster_rows * columns; }
  __device__ Tile tile(int number) const { return Tile(number, rank, cluster_rows, columns); }
};

// ---------------------------------------------------------------------------------------------------------------------
// Kernel

// One thread. Asks for the tiles of every k as soon as a stage is empty in both blocks: a's for this block, and for both
// its share of b's panels. Each block gets sizeof(Stage), a part of it from the other.
__device__ void produce(Shared& shared, const TileMap& a, const TileMap& b, const Work& work) {
  constexpr int share = kPanels / kCluster;
  constexpr uint16_t everyone = (1 << kCluster) - 1;
  Place place;
  for (int number = work.first; number < work.end(); number += work.stride) {
    Tile tile = work.tile(number);
    for (int step = 0; step < work.steps; ++step, place.advance()) {
      Stage& stage = shared.stages[place.stage];
      Barrier& full = shared.full[place.stage];
      hopper::wait(shared.empty[place.stage], place.parity ^ 1);  // at first there is no phase to wait for
      hopper::arrive_and_expect(full, sizeof(Stage));
      hopper::load_tile(stage.a, a, full, tile.row, step * kK);
      for (int p = work.rank * share; p < (work.rank + 1) * share; ++p)
        hopper::load_tile_for(everyone, stage.b[p], b, full, step * kK, tile.column + p * kPanel);
    }
  }
}

// A warp. Writes panel `p`, 64 columns, of its 16 rows of c, which begin at `row`: to shared memory, and from there to c.
// pairs: its part of a tile in the order of wgmma_64x256x16, two neighbours in each.
__device__ void write_panel(const __nv_bfloat162 (&pairs)[64], int p, Results& results, const TileMap& c, int row,
                            int column) {
  auto& panel = results.panels[p % kBuffers];
  int lane = threadIdx.x % 32;
  if (lane == 0) hopper::store_wait<kBuffers - 1>();  // the panel that was here is on its way
  __syncwarp();
#pragma unroll
  for (int j = 0; j < kPanel / 8; ++j) {
    for (int i = 0; i < 2; ++i) {
      uint32_t at = hopper::swizzled((lane / 4 + 8 * i) * hopper::kRowBytes + (8 * j + lane % 4 * 2) * 2);
      *reinterpret_cast<__nv_bfloat162*>(reinterpret_cast<char*>(panel) + at) = pairs[2 * (p * kPanel / 8 + j) + i];
    }
  }
  hopper::fence_before_store();
  __syncwarp();
  if (lane == 0) {
    hopper::store_tile(c, panel, row, column + p * kPanel);
    hopper::store_commit();
  }
}

// A warp group. Multiplies what the producers bring; `which` of the consumers it is says which 64 rows it has. The tile
// before waits, rounded, in registers: a panel of it is written after each of a tile's first products has begun.
__device__ void consume(Shared& shared, const TileMap& c, int which, const Work& work) {
  Place place;
  int thread = threadIdx.x % kWarpGroup, warp = thread / 32, row = 0, column = 0, before = -1;
  float d[128];
  __nv_bfloat162 done[64];
  // Begins the products of a stage.
  auto multiply = [&](bool add) {
    Stage& stage = shared.stages[place.stage];
    hopper::wait(shared.full[place.stage], place.parity);
    // Each 16 of k: 32 bytes on within a's swizzled rows, 16 rows of 128 bytes on in b's panels.
    uint64_t a = hopper::descriptor(stage.a[which * 64], 16);
    uint64_t b = hopper::descriptor(stage.b, sizeof(stage.b[0]));
    hopper::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK / 16; ++k)
      hopper::wgmma_64x256x16(d, a + k * (32 >> 4), b + k * (16 * hopper::kRowBytes >> 4), add || k > 0);
    hopper::wgmma_commit();
  };
  // One thread for each block of the cluster says there that a stage is empty.
  auto release = [&](int stage) {
    if (thread < kCluster) hopper::arrive_at(thread, shared.empty[stage]);
  };
  // Ends those of the stage before, and goes on to the next.
  auto advance = [&] {
    hopper::wgmma_wait<1>();
    if (before >= 0) release(before);
    before = place.stage;
    place.advance();
  };
  for (int number = work.first; number < work.end(); number += work.stride) {
#pragma unroll
    for (int p = 0; p < kPanels; ++p) {
      if (p < work.steps) multiply(p > 0);
      if (number != work.first) write_panel(done, p, shared.results[which * 4 + warp], c, row, column);
      if (p < work.steps) advance();
    }
    for (int step = kPanels; step < work.steps; ++step) {
      multiply(true);
      advance();
    }
    hopper::wgmma_wait_for(d);
    release(before);
    before = -1;
#pragma unroll
    for (int i = 0; i < 64; ++i) done[i] = __floats2bfloat162_rn(d[2 * i], d[2 * i + 1]);
    Tile tile = work.tile(number);
    row = tile.row + which * 64 + warp * kWarpRows, column = tile.column;
  }
#pragma unroll
  for (int p = 0; p < kPanels; ++p) write_panel(done, p, shared.results[which * 4 + warp], c, row, column);
  hopper::store_wait<0>();  // shared memory must outlive the stores
}

// a: m x k, b: k x n, c: m x n, all row-major; steps of kK numbers of k, at least one.
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    matmul_cluster_kernel(const __grid_constant__ TileMap a, const __grid_constant__ TileMap b,
                          const __grid_constant__ TileMap c, int cluster_rows, int columns, int steps) {
  extern __shared__ __align__(1024) char memory[];
  uint32_t past = hopper::shared_address(memory) % 1024;
  Shared& shared = *reinterpret_cast<Shared*>(memory + (past ? 1024 - past : 0));
  if (threadIdx.x == 0) {
    hopper::prefetch(a), hopper::prefetch(b);
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::init(shared.full[stage], 1);
      hopper::init(shared.empty[stage], kCluster * kConsumers);
    }
    hopper::fence_init();
  }
  hopper::cluster_sync();  // nobody arrives at a barrier that is not initialised, in either block
  Work work{
      hopper::cluster_rank(), int(blockIdx.x) / kCluster, int(gridDim.x) / kCluster, cluster_rows, columns, steps};
  int group = threadIdx.x / kWarpGroup;
  if (group == 0) {
    hopper::keep_registers<40>();
    if (threadIdx.x == 0) produce(shared, a, b, work);
  } else {
    hopper::take_registers<232>();
    consume(shared, c, group - 1, work);
  }
  hopper::cluster_sync();  // nobody leaves while the other block may write into it or arrive at its barriers
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

Tensor matmul_cluster(const Tensor& a, const Tensor& b) {
  ladder::check_input(a, "a", ScalarType::BFloat16);
  ladder::check_input(b, "b", ScalarType::BFloat16);
  STD_TORCH_CHECK(a.dim() == 2, "a must be a matrix, got shape ", ladder::shape_of(a));
  STD_TORCH_CHECK(b.dim() == 2 && b.size(0) == a.size(1), "b must have as many rows as a has columns, got shapes ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
  STD_TORCH_CHECK(a.get_device_index() == b.get_device_index(),
                  "a and b must be on the same device, got cuda:", a.get_device_index(),
                  " and cuda:", b.get_device_index());
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  constexpr int64_t limit = INT32_MAX - kCluster * kM - kN;
  STD_TORCH_CHECK(m <= limit && n <= limit && k <= limit, "a and b must have at most ", limit,
                  " rows and columns, got shapes ", ladder::shape_of(a), " and ", ladder::shape_of(b));
  auto guard = ladder::on_device_of(a);
  Tensor c = torch::stable::new_empty(a, {m, n});
  if (m == 0 || n == 0) return c;
  if (k == 0) return torch::stable::zero_(c);
  STD_TORCH_CHECK(k % 8 == 0 && ladder::aligned_to_16(a.data_ptr()),
                  "a must have rows of whole 16 bytes: a multiple of 8 ", "columns, got ", k,
                  "; pad it, or use matmul_mma");
  STD_TORCH_CHECK(n % 8 == 0 && ladder::aligned_to_16(b.data_ptr()),
                  "b must have rows of whole 16 bytes: a multiple of 8 ", "columns, got ", n,
                  "; pad it, or use matmul_mma");
  int64_t cluster_rows = ceil_div(m, kCluster * kM), columns = ceil_div(n, kN), tiles = cluster_rows * columns;
  STD_TORCH_CHECK(tiles < (1 << 30), "c must have fewer than 2^30 tiles, got shape [", m, ", ", n, "]");
  int device = 0, processors = 0;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  STD_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  STD_CUDA_CHECK(
      cudaFuncSetAttribute(matmul_cluster_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  TileMap tiles_a = hopper::tile_map(a.data_ptr(), m, k, kM), tiles_b = hopper::tile_map(b.data_ptr(), k, n, kK),
          panels_c = hopper::tile_map(c.data_ptr(), m, n, kWarpRows);
  int64_t clusters = std::min<int64_t>(tiles, std::max(1, processors / kCluster));
  matmul_cluster_kernel<<<clusters * kCluster, kThreads, kSharedBytes, ladder::current_stream(a)>>>(
      tiles_a, tiles_b, panels_c, cluster_rows, columns, ceil_div(k, kK));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return c;
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_cluster(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("matmul_cluster(Tensor a, Tensor b) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("matmul_cluster", TORCH_BOX(&matmul_cluster)); }
