// 11_wgmma.cu: c = a @ b in bfloat16 on Hopper's own units: TMA brings the tiles, wgmma multiplies them.
//
// What it adds to mma.sync: products are read straight from shared memory, not through registers, and run while the
// threads wait; tiles come without any thread computing addresses. One warp group, the producer, only asks for tiles; two
// others, the consumers, only multiply. Between them is a ring of kStages stages of shared memory, each with two
// barriers: `full`, when a stage's tiles are there, and `empty`, when both consumers have done with them.
//
// A block has a tile of c of 128 x 256: 64 x 256 for each consumer, 128 registers of every thread. For each 64 of k it
// loads 16 KB of a and 32 KB of b for 2 * 128 * 256 * 64 FLOPs: 85 FLOPs a byte, twice what a 128 x 128 tile has. There
// is a block for each multiprocessor, which takes tile after tile, so that the producer is a tile ahead while the
// consumers write. Tiles are taken in groups of kGroup rows, column by column: what runs together shares rows and
// columns in the L2 cache.
// What limits it: time between tiles. On an H200 it has 100% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>

#include "hopper.h"
#include "narrow.h"

using hopper::Barrier;
using hopper::bfloat16;
using hopper::TileMap;
using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kM = 128, kN = 256, kK = 64;  // a block's tile of c; numbers of k in a stage
constexpr int kPanel = 64;                  // columns of b that lie together: 128 bytes
constexpr int kPanels = kN / kPanel;
constexpr int kStages = 4;
constexpr int kGroup = 16;  // rows of tiles
constexpr int kWarpGroup = 128, kConsumers = 2, kThreads = (1 + kConsumers) * kWarpGroup;
static_assert(kM == kConsumers * 64, "each consumer has the 64 rows of a wgmma");
static_assert(kK * sizeof(bfloat16) == hopper::kRowBytes, "a row of a stage's tile of a is one swizzled row");

struct Stage {
  bfloat16 a[kM][kK];               // row-major
  bfloat16 b[kPanels][kK][kPanel];  // row-major within a panel
};
static_assert(sizeof(Stage) % 1024 == 0, "stages begin where the swizzle's pattern begins");

struct Shared {
  Stage stages[kStages];
  Barrier full[kStages], empty[kStages];
};
constexpr int kSharedBytes = sizeof(Shared) + 1024;  // dynamic shared memory may begin before a multiple of 1,024

// A place in the ring: the stage, and the parity of the phase in which it is used.
struct Place {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

// Which tile of c is number `tile`.
struct Tile {
  int row, column;
  __device__ Tile(int tile, int tile_rows, int tile_columns) {
    int group = tile / (kGroup * tile_columns), first = group * kGroup;
    int rows = tile_rows - first < kGroup ? tile_rows - first : kGroup, within = tile - first * tile_columns;
    row = (first + within % rows) * kM;
    column = within / rows * kN;
  }
};

// ---------------------------------------------------------------------------------------------------------------------
// Kernel

// One thread. Asks for the tiles of every k, tile after tile, as soon as a stage is empty.
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

// d: this thread's part of 64 rows of c from `row`, in the order of wgmma_64x256x16: two neighbours of each 8 columns.
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

// A warp group. Multiplies what the producer brings; `which` of the consumers it is says which 64 rows it has.
__device__ void consume(Shared& shared, bfloat16* c, int which, int m, int n, int tile_rows, int tile_columns,
                        int steps) {
  Place place;
  bool speaker = threadIdx.x % kWarpGroup == 0;
  float d[128];
  for (int number = blockIdx.x; number < tile_rows * tile_columns; number += gridDim.x) {
    Tile tile(number, tile_rows, tile_columns);
    Barrier* before = nullptr;  // of the stage whose products may still be under way
    for (int step = 0; step < steps; ++step, place.advance()) {
      Stage& stage = shared.stages[place.stage];
      hopper::wait(shared.full[place.stage], place.parity);
      // Each 16 of k: 32 bytes on within a's swizzled rows, 16 rows of 128 bytes on in b's panels.
      uint64_t a = hopper::descriptor(stage.a[which * 64], 16);
      uint64_t b = hopper::descriptor(stage.b, sizeof(stage.b[0]));
      hopper::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kK / 16; ++k) {
        hopper::wgmma_64x256x16(d, a + k * (32 >> 4), b + k * (16 * hopper::kRowBytes >> 4), step + k > 0);
      }
      hopper::wgmma_commit();
      hopper::wgmma_wait<1>();  // the step before is done with its stage
      if (speaker && before) hopper::arrive(*before);
      before = &shared.empty[place.stage];
    }
    hopper::wgmma_wait_for(d);
    if (speaker && before) hopper::arrive(*before);
    write(d, c, tile.row + which * 64, tile.column, m, n);
  }
}

// a: m x k, b: k x n, c: m x n, all row-major; steps of kK numbers of k, at least one.
__global__ void __launch_bounds__(kThreads)
    matmul_wgmma_kernel(const __grid_constant__ TileMap a, const __grid_constant__ TileMap b, bfloat16* c, int m, int n,
                        int tile_rows, int tile_columns, int steps) {
  extern __shared__ __align__(1024) char memory[];
  uint32_t past = hopper::shared_address(memory) % 1024;
  Shared& shared = *reinterpret_cast<Shared*>(memory + (past ? 1024 - past : 0));
  if (threadIdx.x == 0) {
    hopper::prefetch(a), hopper::prefetch(b);
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::init(shared.full[stage], 1);
      hopper::init(shared.empty[stage], kConsumers);
    }
    hopper::fence_init();
  }
  __syncthreads();  // nobody waits at a barrier that is not initialised
  int group = threadIdx.x / kWarpGroup;
  if (group == 0) {
    hopper::keep_registers<40>();
    if (threadIdx.x == 0) produce(shared, a, b, tile_rows, tile_columns, steps);
  } else {
    hopper::take_registers<232>();
    consume(shared, c, group - 1, m, n, tile_rows, tile_columns, steps);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

Tensor matmul_wgmma(const Tensor& a, const Tensor& b) {
  ladder::check_input(a, "a", ScalarType::BFloat16);
  ladder::check_input(b, "b", ScalarType::BFloat16);
  STD_TORCH_CHECK(a.dim() == 2, "a must be a matrix, got shape ", ladder::shape_of(a));
  STD_TORCH_CHECK(b.dim() == 2 && b.size(0) == a.size(1), "b must have as many rows as a has columns, got shapes ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
  STD_TORCH_CHECK(a.get_device_index() == b.get_device_index(),
                  "a and b must be on the same device, got cuda:", a.get_device_index(),
                  " and cuda:", b.get_device_index());
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  STD_TORCH_CHECK(m <= INT32_MAX - kM && n <= INT32_MAX - kN && k <= INT32_MAX - kK,
                  "a and b must have fewer than 2^31 ", "rows and columns, got shapes ", ladder::shape_of(a), " and ",
                  ladder::shape_of(b));
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
  int device = 0, processors = 0;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  STD_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  STD_CUDA_CHECK(cudaFuncSetAttribute(matmul_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  int64_t tile_rows = ceil_div(m, kM), tile_columns = ceil_div(n, kN), tiles = tile_rows * tile_columns;
  TileMap tiles_a = hopper::tile_map(a.data_ptr(), m, k, kM), tiles_b = hopper::tile_map(b.data_ptr(), k, n, kK);
  int64_t blocks = std::min<int64_t>(tiles, processors);
  matmul_wgmma_kernel<<<blocks, kThreads, kSharedBytes, ladder::current_stream(a)>>>(
      tiles_a, tiles_b, static_cast<bfloat16*>(c.data_ptr()), m, n, tile_rows, tile_columns, ceil_div(k, kK));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return c;
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_wgmma(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("matmul_wgmma(Tensor a, Tensor b) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("matmul_wgmma", TORCH_BOX(&matmul_wgmma)); }
