// turned_tile.cu: Transpose between two TMA tiles. Exercise 3 of lesson 11, about 30 minutes.
//
// `out = x.T`. TMA has loaded a tile of kSide x kSide elements of x, 128 bytes per row,
// and swizzled it: of row r, the group g of 8 neighbours is at group g ^ (r % 8). Write
// `place`, which computes where an element is. Then transpose the tile into `turned`,
// in the same layout, and have one thread store it with TMA. The check counts
// wavefronts: 1 per request. Elements outside x have arrived as zeros, and TMA stores
// nothing outside out.
//
// Check this file with: python -m helpers check turned_tile
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.
//
// [hints]
// - Element (r, c) is number c % 8 within group c / 8 of its row. In C++, ^ binds more
//   loosely than + and /.
// - The 256 threads share the elements: thread t takes t, t + 256, and so on. A warp
//   that takes 8 columns of 4 rows has no two elements in the same bank.
// - The element at (r, c) of x is at (c, r) of out. So where does the tile of out
//   begin, if that of x begins at (row, column)?
// - TMA sees what a thread wrote after that thread's fence_before_store(); one thread
//   may request the store once all threads have done so. It must wait until TMA has
//   read the tile: store_commit(), then store_wait<0>().
// [end]

#include <torch/csrc/stable/library.h>

#include "hopper_matmul.h"

using hopper::Barrier;
using hopper::bfloat16;
using hopper::TileMap;
using torch::stable::Tensor;

constexpr int kSide = 64, kTile = kSide * kSide, kThreads = 256;

struct Shared {
  bfloat16 tile[kTile], turned[kTile];
  Barrier full;
};

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// The index in a tile of the element in this row and column of it.
__device__ int place(int row, int column) {
  int index = 0;
  // [solution: about 1 line]
  index = row * kSide + (column / 8 ^ row % 8) * 8 + column % 8;
  // [end]
  return index;
}

// All kThreads threads of a block. tile begins at (row, column) of x and has arrived;
// `to` is the map of out.
__device__ void turn(const bfloat16* tile, bfloat16* turned, const TileMap& to, int row,
                     int column) {
  // [solution: about 10 lines]
  for (int i = threadIdx.x; i < kTile; i += kThreads) {
    // Of a warp, 4 rows and 8 columns: all in different banks.
    int r = i / 8 % kSide, c = i / (8 * kSide) * 8 + i % 8;
    turned[place(r, c)] = tile[place(c, r)];
  }
  hopper::fence_before_store();
  __syncthreads();  // all threads have written, and made it visible to TMA
  if (threadIdx.x == 0) {
    hopper::store_tile(to, turned, column, row);
    hopper::store_commit();
    hopper::store_wait<0>();
  }
  // [end]
}
// [end]

__global__ void turned_tile_kernel(const __grid_constant__ TileMap x,
                                   const __grid_constant__ TileMap out) {
  extern __shared__ __align__(1024) char memory[];
  Shared& shared = hopper::aligned<Shared>(memory);
  int row = blockIdx.y * kSide, column = blockIdx.x * kSide;
  if (threadIdx.x == 0) {
    hopper::init(shared.full, 1);
    hopper::fence_init();
    hopper::arrive_and_expect(shared.full, kTile * sizeof(bfloat16));
    hopper::load_tile(shared.tile, x, shared.full, row, column);
  }
  __syncthreads();  // no thread waits at the barrier before it is initialised
  hopper::wait(shared.full, 0);
  turn(shared.tile, shared.turned, out, row, column);
}

// -------------------------------------------------------------------------------------
// Launcher

// x: a matrix whose rows and columns are multiples of 8; out: one of as many rows as x
// has columns.
void turned_tile(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", ladder::ScalarType::BFloat16);
  ladder::check_input(out, "out", ladder::ScalarType::BFloat16);
  STD_TORCH_CHECK(x.dim() == 2 && x.size(0) % 8 == 0 && x.size(1) % 8 == 0,
                  "x must have multiples of 8 rows and columns, got shape ",
                  ladder::shape_of(x));
  int64_t rows = x.size(0), columns = x.size(1);
  STD_TORCH_CHECK(out.dim() == 2 && out.size(0) == columns && out.size(1) == rows,
                  "out must be ", columns, " x ", rows, ", got shape ",
                  ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return;
  TileMap from = hopper::tile_map(x.data_ptr(), rows, columns, kSide);
  TileMap to = hopper::tile_map(out.data_ptr(), columns, rows, kSide);
  dim3 grid(ladder::ceil_div(columns, kSide), ladder::ceil_div(rows, kSide));
  turned_tile_kernel<<<grid, kThreads, hopper::kSharedBytes<Shared>,
                       ladder::current_stream(x)>>>(from, to);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("turned_tile(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("turned_tile", TORCH_BOX(&turned_tile));
}
