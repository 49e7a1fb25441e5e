// ring_consumer.cu: A consumer that names its phase. Exercise 1 of lesson 11, about 15 minutes.
//
// `out = 2 * x`, tile by tile, through a ring of three stages. The producer is given:
// it fills stages 0, 1, 2, 0, and so on, each as soon as the consumer has emptied it.
// Write the consumer, a warp. For each tile it waits until the tile has arrived, calls
// `twice`, and tells the producer that the stage is empty. Tile i completes phase i /
// kStages of its stage's `full`. One arrival completes a phase of `empty`.
//
// Check this file with: python -m helpers check ring_consumer
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.
//
// [hints]
// - Tile i is in stage i % kStages. A wait names a phase by its parity: that of i /
//   kStages.
// - One arrival is enough for `empty`, so one lane arrives. But all 32 lanes must have
//   read the tile before.
// - __syncwarp() waits until all lanes of a warp have come to it.
// [end]

#include <torch/csrc/stable/library.h>

#include "hopper_matmul.h"

using hopper::Barrier;
using hopper::bfloat16;
using hopper::TileMap;
using torch::stable::Tensor;

constexpr int kRows = 8, kColumns = 64, kTile = kRows * kColumns,
              kTileBytes = kTile * sizeof(bfloat16);
// a warp for the producer, one for the consumer.
constexpr int kStages = 3, kThreads = 64;

struct Ring {
  bfloat16 tiles[kStages][kTile];
  Barrier full[kStages], empty[kStages];
};

// -------------------------------------------------------------------------------------
// Kernel

// A warp. out: the tile's elements, doubled, in row-major order.
__device__ void twice(const bfloat16* tile, bfloat16* out) {
  for (int i = threadIdx.x % 32; i < kTile; i += 32) {
    out[i] =
        __float2bfloat16(2.0f * __bfloat162float(tile[hopper::swizzled(2 * i) / 2]));
  }
}

// One thread.
__device__ void produce(Ring& ring, const TileMap& x, int tiles) {
  for (int i = 0; i < tiles; ++i) {
    int stage = i % kStages;
    // The phase before: for the first, one that counts as complete.
    hopper::wait(ring.empty[stage], i / kStages % 2 ^ 1);
    hopper::arrive_and_expect(ring.full[stage], kTileBytes);
    hopper::load_tile(ring.tiles[stage], x, ring.full[stage], i * kRows, 0);
  }
}

// [cell]
// A warp. out: `tiles` tiles of kTile elements, one after the other. ring has
// tiles[kStages], full[kStages] and empty[kStages]; twice(tile, out) writes a tile's
// elements, doubled.
__device__ void consume(Ring& ring, bfloat16* out, int tiles) {
  // [solution: about 7 lines]
  for (int i = 0; i < tiles; ++i) {
    int stage = i % kStages;
    hopper::wait(ring.full[stage], i / kStages % 2);
    twice(ring.tiles[stage], out + i * kTile);
    __syncwarp();  // all lanes have read the tile
    if (threadIdx.x % 32 == 0) hopper::arrive(ring.empty[stage]);
  }
  // [end]
}
// [end]

__global__ void ring_consumer_kernel(const __grid_constant__ TileMap x, bfloat16* out,
                                     int tiles) {
  extern __shared__ __align__(1024) char memory[];
  Ring& ring = hopper::aligned<Ring>(memory);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::init(ring.full[stage], 1);
      hopper::init(ring.empty[stage], 1);
    }
    hopper::fence_init();
  }
  __syncthreads();  // no thread waits at a barrier before it is initialised
  if (threadIdx.x == 0) produce(ring, x, tiles);
  if (threadIdx.x >= 32) consume(ring, out, tiles);
}

// -------------------------------------------------------------------------------------
// Launcher

// x, out: matrices of kColumns columns and a multiple of kRows rows.
void ring_consumer(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", ladder::ScalarType::BFloat16);
  ladder::check_input(out, "out", ladder::ScalarType::BFloat16);
  ladder::check_same(x, "x", out, "out");
  STD_TORCH_CHECK(x.dim() == 2 && x.size(1) == kColumns && x.size(0) % kRows == 0,
                  "x must have ", kColumns, " columns and a multiple of ", kRows,
                  " rows, got shape ", ladder::shape_of(x));
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return;
  TileMap map = hopper::tile_map(x.data_ptr(), x.size(0), kColumns, kRows);
  ring_consumer_kernel<<<1, kThreads, hopper::kSharedBytes<Ring>,
                         ladder::current_stream(x)>>>(
      map, static_cast<bfloat16*>(out.data_ptr()), x.size(0) / kRows);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("ring_consumer(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("ring_consumer", TORCH_BOX(&ring_consumer));
}
