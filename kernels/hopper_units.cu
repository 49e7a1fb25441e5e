// hopper_units.cu: Hopper's units one at a time, each in a kernel of one block.
//
//   copy_tile      TMA alone: a tile from a matrix to shared memory, and on to another
//                  matrix
//   barrier_alone  an mbarrier alone: after which events does which wait return?
//   product        wgmma alone: one instruction multiplies 64 x 16 by 16 x 256 elements
//   ring           TMA and mbarriers: a producer fills stages, a warp empties them, and
//                  each step is logged
//
// A tile is what TMA stores in one go: rows of 64 bfloat16, 128 bytes.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <tuple>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "hopper_matmul.h"
#include "launch.h"

using hopper::Barrier;
using hopper::bfloat16;
using hopper::TileMap;
using ladder::ScalarType;
using torch::stable::Tensor;

constexpr int kRows = 8, kColumns = 64, kTile = kRows * kColumns,
              kTileBytes = kTile * sizeof(bfloat16);
constexpr int kStages = 2;  // of the ring
constexpr int kEvents = 6;  // of barrier_alone
constexpr int kLogged = 6;  // numbers per step of the ring

// -------------------------------------------------------------------------------------
// TMA alone. from, to: matrices with boxes of kRows rows; raw: the tile's elements in
// the order of shared memory. A warp.

__global__ void copy_tile_kernel(const __grid_constant__ TileMap from,
                                 const __grid_constant__ TileMap to, bfloat16* raw,
                                 int row, int column, int to_row, int to_column) {
  __shared__ __align__(1024) bfloat16 tile[kTile];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    hopper::init(full, 1);
    hopper::fence_init();
    hopper::arrive_and_expect(full, kTileBytes);
    // Returns at once; the bytes arrive later.
    hopper::load_tile(tile, from, full, row, column);
  }
  __syncwarp();           // the barrier is initialised
  hopper::wait(full, 0);  // the tile is there
  for (int i = threadIdx.x; i < kTile; i += 32) raw[i] = tile[i];
  if (threadIdx.x == 0) {
    hopper::store_tile(to, tile, to_row, to_column);
    hopper::store_commit();
    hopper::store_wait<0>();  // shared memory must outlive the store
  }
}

// -------------------------------------------------------------------------------------
// An mbarrier alone. log: for each event, whether a wait for parity 0 would return, and
// one for parity 1. One thread.

__global__ void barrier_alone_kernel(const __grid_constant__ TileMap from, int* log) {
  __shared__ __align__(1024) bfloat16 tile[kTile];
  __shared__ Barrier barrier;
  auto note = [&] {
    *log++ = hopper::test(barrier, 0);
    *log++ = hopper::test(barrier, 1);
  };
  hopper::init(barrier, 2);  // two arrivals complete a phase
  hopper::fence_init();
  note();
  hopper::arrive(barrier);
  note();
  hopper::arrive(barrier);  // completes phase 0
  note();
  hopper::arrive_and_expect(barrier, kTileBytes);
  note();
  hopper::arrive(barrier);  // the arrivals of phase 1 are complete, its bytes are not
  note();
  hopper::load_tile(tile, from, barrier, 0, 0);
  hopper::wait(barrier, 1);  // the bytes complete phase 1
  note();
}

// -------------------------------------------------------------------------------------
// wgmma alone. c = a @ b: a 64 x 16, b 16 x 256, c 64 x 256 floats, row-major.
// descriptors: of a and b. A warp group.

struct Factors {
  bfloat16 a[64][kColumns];  // 16 columns of a, then zeros: columns outside the matrix
  bfloat16 b[4][16][kColumns];  // four panels of 64 columns
  Barrier full;
};

__global__ void product_kernel(const __grid_constant__ TileMap a,
                               const __grid_constant__ TileMap b, float* c,
                               int64_t* descriptors) {
  extern __shared__ __align__(1024) char memory[];
  Factors& factors = hopper::aligned<Factors>(memory);
  int t = threadIdx.x;
  if (t == 0) {
    hopper::init(factors.full, 1);
    hopper::fence_init();
    hopper::arrive_and_expect(factors.full, sizeof factors.a + sizeof factors.b);
    hopper::load_tile(factors.a, a, factors.full, 0, 0);
    for (int p = 0; p < 4; ++p)
      hopper::load_tile(factors.b[p], b, factors.full, 0, p * kColumns);
  }
  __syncthreads();
  hopper::wait(factors.full, 0);
  uint64_t of_a = hopper::descriptor(factors.a, 16);
  uint64_t of_b = hopper::descriptor(factors.b, sizeof(factors.b[0]));
  float d[128];
  hopper::wgmma_fence();
  hopper::wgmma_64x256x16(d, of_a, of_b, 0);  // begins d = a * b, and returns
  hopper::wgmma_commit();
  hopper::wgmma_wait_for(d);
  int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
#pragma unroll
  for (int j = 0; j < 32; ++j)
    for (int i = 0; i < 4; ++i)
      c[(row + i / 2 * 8) * 256 + 8 * j + column + i % 2] = d[4 * j + i];
  if (t == 0) descriptors[0] = of_a, descriptors[1] = of_b;
}

// -------------------------------------------------------------------------------------
// A ring of kStages stages. out = x, `steps` tiles one below the other. The first
// thread of warp 0 is the producer; the consumer, warp 1, writes a tile to out and logs
// for its step: stage, the parity for which the producer waits and the one for which it
// waits itself, and the parities of the phases of `full` and `empty` that are complete.

struct Ring {
  bfloat16 tiles[kStages][kTile];
  Barrier full[kStages], empty[kStages];
};

// One thread.
__device__ void fill(Ring& ring, const TileMap& x, int steps) {
  for (int step = 0; step < steps; ++step) {
    int stage = step % kStages, parity = step / kStages % 2;
    // At first there is no phase to wait for.
    hopper::wait(ring.empty[stage], parity ^ 1);
    hopper::arrive_and_expect(ring.full[stage], kTileBytes);
    hopper::load_tile(ring.tiles[stage], x, ring.full[stage], step * kRows, 0);
  }
}

// A warp. off: 0, or 1 for a consumer that waits for the wrong parity.
__device__ void drain(Ring& ring, bfloat16* out, int* log, int steps, int off) {
  int lane = threadIdx.x % 32;
  for (int step = 0; step < steps; ++step) {
    int stage = step % kStages, parity = step / kStages % 2;
    hopper::wait(ring.full[stage], parity ^ off);
    for (int i = lane; i < kTile; i += 32)
      out[step * kTile + i] = ring.tiles[stage][hopper::swizzled(2 * i) / 2];
    if (lane == 0) {
      int logged[kLogged] = {step,
                             stage,
                             parity ^ 1,
                             parity ^ off,
                             hopper::test(ring.full[stage], 1),
                             hopper::test(ring.empty[stage], 1)};
      for (int i = 0; i < kLogged; ++i) log[step * kLogged + i] = logged[i];
    }
    __syncwarp();  // all lanes have read the tile
    if (lane == 0) hopper::arrive(ring.empty[stage]);
  }
}

__global__ void ring_kernel(const __grid_constant__ TileMap x, bfloat16* out, int* log,
                            int steps, int off) {
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
  if (threadIdx.x == 0) fill(ring, x, steps);
  if (threadIdx.x >= 32) drain(ring, out, log, steps, off);
}

// -------------------------------------------------------------------------------------
// Launchers

TileMap map_of(const Tensor& t, const char* name, int box_rows) {
  ladder::check_input(t, name, ScalarType::BFloat16);
  STD_TORCH_CHECK(t.dim() == 2 && t.size(0) > 0 && t.size(1) > 0 && t.size(1) % 8 == 0,
                  name, " must be a matrix with a multiple of 8 columns, got shape ",
                  ladder::shape_of(t));
  return hopper::tile_map(t.data_ptr(), t.size(0), t.size(1), box_rows);
}

bfloat16* elements(const Tensor& t) { return static_cast<bfloat16*>(t.data_ptr()); }

// Returns the tile in the order of shared memory, and a matrix like x with the tile at
// (to_row, to_column), else zeros.
std::tuple<Tensor, Tensor> copy_tile(const Tensor& x, int64_t row, int64_t column,
                                     int64_t to_row, int64_t to_column) {
  STD_TORCH_CHECK(
      column % 8 == 0 && to_column % 8 == 0 && to_row >= 0 && to_column >= 0,
      "column and to_column must be multiples of 8, to_row and to_column at least 0; "
      "got column ",
      column, ", to_row ", to_row, ", to_column ", to_column);
  auto guard = ladder::on_device_of(x);
  Tensor raw = torch::stable::new_empty(x, {kRows, kColumns}),
         to = torch::stable::new_zeros(x, x.sizes());
  copy_tile_kernel<<<1, 32, 0, ladder::current_stream(x)>>>(
      map_of(x, "x", kRows), map_of(to, "to", kRows), elements(raw), row, column,
      to_row, to_column);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {raw, to};
}

// x: a matrix of at least one element, of which a tile is loaded. Returns kEvents x 2
// ints, 0 or 1.
Tensor barrier_alone(const Tensor& x) {
  TileMap map = map_of(x, "x", kRows);
  auto guard = ladder::on_device_of(x);
  Tensor log = torch::stable::new_empty(x, {kEvents, 2}, ScalarType::Int);
  barrier_alone_kernel<<<1, 1, 0, ladder::current_stream(x)>>>(
      map, log.mutable_data_ptr<int>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return log;
}

// Returns c, and the descriptors of a and b as two int64.
std::tuple<Tensor, Tensor> product(const Tensor& a, const Tensor& b) {
  TileMap map_a = map_of(a, "a", 64), map_b = map_of(b, "b", 16);
  STD_TORCH_CHECK(
      a.size(0) == 64 && a.size(1) == 16 && b.size(0) == 16 && b.size(1) == 256,
      "a must be 64 x 16 and b 16 x 256, got ", ladder::shape_of(a), " and ",
      ladder::shape_of(b));
  auto guard = ladder::on_device_of(a);
  Tensor c = torch::stable::new_empty(a, {64, 256}, ScalarType::Float);
  Tensor descriptors = torch::stable::new_empty(a, {2}, ScalarType::Long);
  product_kernel<<<1, hopper::kWarpGroup, hopper::kSharedBytes<Factors>,
                   ladder::current_stream(a)>>>(
      map_a, map_b, c.mutable_data_ptr<float>(),
      descriptors.mutable_data_ptr<int64_t>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {c, descriptors};
}

// Returns out and the log, steps x kLogged ints.
std::tuple<Tensor, Tensor> ring(const Tensor& x, int64_t off) {
  TileMap map = map_of(x, "x", kRows);
  STD_TORCH_CHECK(x.size(1) == kColumns && x.size(0) % kRows == 0, "x must have ",
                  kColumns, " columns and a multiple of ", kRows, " rows, got shape ",
                  ladder::shape_of(x));
  auto guard = ladder::on_device_of(x);
  int64_t steps = x.size(0) / kRows;
  Tensor out = torch::stable::empty_like(x),
         log = torch::stable::new_empty(x, {steps, kLogged}, ScalarType::Int);
  ring_kernel<<<1, 64, hopper::kSharedBytes<Ring>, ladder::current_stream(x)>>>(
      map, elements(out), log.mutable_data_ptr<int>(), steps, off);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {out, log};
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.copy_tile(x, 0, 0, 0, 0) and so on, for
// CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "copy_tile(Tensor x, int row, int column, int to_row, int to_column) -> (Tensor, "
      "Tensor)");
  m.def("barrier_alone(Tensor x) -> Tensor");
  m.def("product(Tensor a, Tensor b) -> (Tensor, Tensor)");
  m.def("ring(Tensor x, int off) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("copy_tile", TORCH_BOX(&copy_tile));
  m.impl("barrier_alone", TORCH_BOX(&barrier_alone));
  m.impl("product", TORCH_BOX(&product));
  m.impl("ring", TORCH_BOX(&ring));
}
