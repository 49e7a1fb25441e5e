// units.cu: small kernels with clusters, mbarriers and tiles: each with one planted fault, or fixed.
//
// A tile is 8 rows of 64 numbers of 16 bits: 1,024 bytes, 128 a row.
#include "case.h"
#include "hopper.h"

using hopper::Barrier;
using hopper::TileMap;

constexpr int kRows = 8, kColumns = 64, kTileBytes = kRows * kColumns * 2;

// Block 0 of each pair reads what block 1 has written, with the cluster's barrier between or with its own.
__global__ void __cluster_dims__(2, 1, 1) pair_kernel(const float* a, float* c, bool fixed) {
  float* both = c + blockIdx.x / 2 * 2 * blockDim.x;
  int rank = hopper::cluster_rank(), i = threadIdx.x;
  if (rank == 1) both[i] = a[i];
  fixed ? hopper::cluster_sync() : __syncthreads();
  if (rank == 0) both[blockDim.x + i] = both[i];  // <- pair
}

// A warp writes, another reads, an mbarrier between: it is for all writers, or for the first alone.
__global__ void hand_over_kernel(const float* a, float* c, bool fixed) {
  __shared__ float row[32];
  __shared__ Barrier written;
  if (threadIdx.x == 0) hopper::init(written, fixed ? 32 : 1);
  __syncthreads();
  int i = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    row[i] = a[i];
    if (fixed || i == 0) hopper::arrive(written);
  } else {
    hopper::wait(written, 0);
    c[i] = row[i];  // <- hand_over
  }
}

// Writers write again when all readers have read, or when the first one has.
__global__ void reuse_kernel(const float* a, float* c, bool fixed) {
  __shared__ float row[32];
  __shared__ Barrier full, empty;
  if (threadIdx.x == 0) hopper::init(full, 32), hopper::init(empty, fixed ? 32 : 1);
  __syncthreads();
  int i = threadIdx.x % 32;
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x < 32) {
      hopper::wait(empty, round % 2 ^ 1);
      row[i] = a[32 * round + i];
      hopper::arrive(full);
    } else {
      hopper::wait(full, round % 2);
      c[32 * round + i] = row[i];  // <- reuse
      if (fixed || i == 0) hopper::arrive(empty);
    }
  }
}

// Nobody initialises the barrier, or all see it done.
__global__ void no_init_kernel(bool fixed) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0 && fixed) hopper::init(barrier, 64);
  __syncthreads();
  hopper::arrive(barrier);  // <- no_init
  if (fixed) hopper::wait(barrier, 0);
}

// One thread more than the barrier is for.
__global__ void too_many_kernel(bool fixed) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) hopper::init(barrier, 32);
  __syncthreads();
  if (threadIdx.x == 0) hopper::arrive_and_expect(barrier, 16);
  __syncthreads();
  if (threadIdx.x > 0 && threadIdx.x < (fixed ? 32 : 33)) hopper::arrive(barrier);  // <- too_many
}

// Threads wait for a phase that lacks an arrival.
__global__ void stuck_kernel(bool fixed) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) hopper::init(barrier, 32);
  __syncthreads();
  if (threadIdx.x < 31 || fixed) hopper::arrive(barrier);
  hopper::wait(barrier, 0);  // <- stuck
}

// A wait for the number of a phase instead of its parity.
__global__ void number_kernel(bool fixed) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) hopper::init(barrier, 1);
  __syncthreads();
  for (int phase = 0; phase < 3; ++phase) {
    if (threadIdx.x == 0) hopper::arrive(barrier);
    hopper::wait(barrier, fixed ? phase % 2 : phase);  // <- number
    __syncthreads();
  }
}

// A barrier in global memory.
__global__ void outside_kernel(float* c, bool fixed) {
  __shared__ Barrier barrier;
  Barrier& chosen = fixed ? barrier : *reinterpret_cast<Barrier*>(c);
  if (threadIdx.x == 0) hopper::init(chosen, 1);  // <- outside
}

// Loads a tile and writes it back. wrong: the part that is left out or changed, from 1 on.
enum { kNothing, kWaitForTile, kBytes, kFence, kSync, kLastWait, kMatrix, kPlace, kZeros, kShared };
__global__ void tile_kernel(const __grid_constant__ TileMap from, const __grid_constant__ TileMap to, float* c, int row,
                            int wrong) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ Barrier full;
  char* tile = memory + (wrong == kShared ? 1024 : 0);
  uint16_t* numbers = reinterpret_cast<uint16_t*>(tile);
  if (threadIdx.x == 0) hopper::init(full, 1), hopper::fence_init();
  if (wrong == kZeros) {
    for (int i = threadIdx.x; i < kRows * kColumns; i += blockDim.x) numbers[i] = 0;  // <- zeros
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile + (wrong == kPlace ? 64 : 0), from, full, row, 0);  // <- load
  }
  if (wrong != kWaitForTile) hopper::wait(full, 0);
  if (wrong == kBytes) hopper::wait(full, 1);                                        // <- bytes
  for (int i = threadIdx.x; i < kRows * kColumns; i += blockDim.x) numbers[i] += 1;  // <- add
  if (wrong != kFence) hopper::fence_before_store();
  if (wrong != kSync) __syncthreads();
  if (threadIdx.x == 0) {
    hopper::store_tile(to, tile, row, 0);  // <- store
    hopper::store_commit();
    if (wrong != kLastWait) hopper::store_wait<0>();
    if (wrong == kMatrix) c[row * kColumns / 2] = 1;  // <- matrix
  }
}

// Each warp's first lane does what `program` says: (what, which) for each step, kSteps steps a warp.
enum { kEnd, kRead, kWrite, kArrive, kWait, kFenceOp, kLoad, kStore, kStoreWait };
constexpr int kSteps = 16, kTiles = 3, kBarriers = 4;
__global__ void program_kernel(const __grid_constant__ TileMap from, const __grid_constant__ TileMap to,
                               const int* arrivals, const int* program) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ Barrier barriers[kBarriers];
  uint16_t* numbers = reinterpret_cast<uint16_t*>(memory);
  for (int i = threadIdx.x; i < kTiles * kTileBytes / 2; i += blockDim.x) numbers[i] = 0;
  hopper::fence_before_store();
  if (threadIdx.x < kBarriers) hopper::init(barriers[threadIdx.x], arrivals[threadIdx.x]), hopper::fence_init();
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  int warp = threadIdx.x / 32;
  for (int step = 0; step < kSteps; ++step) {
    int what = program[2 * (warp * kSteps + step)], which = program[2 * (warp * kSteps + step) + 1];
    char* tile = memory + which / kBarriers * kTileBytes;  // of a load: tile and barrier
    volatile uint16_t* number = reinterpret_cast<volatile uint16_t*>(memory + which * kTileBytes);
    if (what == kEnd) break;
    if (what == kRead) *number;
    if (what == kWrite) *number = uint16_t(1 + warp * kSteps + step);  // writes of one value are a remark
    if (what == kArrive) hopper::arrive(barriers[which]);
    if (what == kWait) hopper::wait(barriers[which], 0);
    if (what == kFenceOp) hopper::fence_before_store();
    if (what == kLoad) {
      hopper::arrive_and_expect(barriers[which % kBarriers], kTileBytes);
      hopper::load_tile(tile, from, barriers[which % kBarriers], 0, 0);
    }
    if (what == kStore) {
      hopper::store_tile(to, memory + which * kTileBytes, kRows * warp, 0);
      hopper::store_commit();
    }
    if (what == kStoreWait) hopper::store_wait<0>();
  }
}

// Of these: a and c, and whether the fault is fixed.
CASE(pair) { pair_kernel<<<4, 32>>>(call.data<float>(0), call.data<float>(1), call.number(0)); }
CASE(hand_over) { hand_over_kernel<<<1, 64>>>(call.data<float>(0), call.data<float>(1), call.number(0)); }
CASE(reuse) { reuse_kernel<<<1, 64>>>(call.data<float>(0), call.data<float>(1), call.number(0)); }
CASE(no_init) { no_init_kernel<<<1, 64>>>(call.number(0)); }
CASE(too_many) { too_many_kernel<<<1, 64>>>(call.number(0)); }
CASE(stuck) { stuck_kernel<<<1, 32>>>(call.number(0)); }
CASE(outside) { outside_kernel<<<1, 32>>>(call.data<float>(1), call.number(0)); }
CASE(number) { number_kernel<<<1, 32>>>(call.number(0)); }

TileMap map_of(const torch::stable::Tensor& t, int64_t rows) {
  return hopper::tile_map(t.data_ptr(), rows, t.size(1), kRows);
}

// from and to; their rows, as TMA is told; the tile's row; wrong.
CASE(tile) {
  TileMap from = map_of(call.tensors[0], call.number(0)), to = map_of(call.tensors[1], call.number(0));
  tile_kernel<<<1, 64, kTileBytes>>>(from, to, call.data<float>(1), call.number(1), call.number(2));
}

// 8 rows to load; 8 rows for each warp to store; arrivals; steps.
CASE(program) {
  TileMap from = map_of(call.tensors[0], kRows), to = map_of(call.tensors[1], call.tensors[1].size(0));
  program_kernel<<<1, 32 * call.tensors[3].size(0), kTiles * kTileBytes>>>(from, to, call.data<int>(2), call.data<int>(3));
}
