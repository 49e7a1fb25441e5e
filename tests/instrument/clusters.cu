// clusters.cu: kernels whose blocks run in clusters, each with one right answer, which a wrong order of events changes.
#include "case.h"
#include "hopper.h"

// A row of three numbers per block: its linear index, its rank in the cluster, its number of threads.
__global__ void __cluster_dims__(2, 1, 2) ranks_kernel(int* out) {
  const int block = int((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
  if (threadIdx.x == 0) {
    out[3 * block] = block;
    out[3 * block + 1] = hopper::cluster_rank();
  }
  atomicAdd(&out[3 * block + 2], 1);
}

CASE(ranks) {
  const auto n = [&](int i) { return unsigned(call.number(i)); };
  ranks_kernel<<<dim3(n(0), n(1), n(2)), n(3)>>>(call.data<int>(0));
}

// Block 0 adds 1 to its neighbour's number, which the neighbour has set to 10, and reads what the neighbour makes of
// it.
__global__ void __launch_bounds__(32) __cluster_dims__(2) exchange_kernel(int* out) {
  int* numbers = out + blockIdx.x / 2 * 2;
  const int rank = hopper::cluster_rank();
  if (rank == 1 && threadIdx.x == 0) numbers[1] = 10;
  hopper::cluster_sync();
  if (rank == 0 && threadIdx.x == 0) numbers[1] += 1;
  hopper::cluster_sync();
  if (rank == 1 && threadIdx.x == 0) numbers[1] *= 2;
  hopper::cluster_sync();
  if (rank == 0 && threadIdx.x == 0) numbers[0] = numbers[1];
}

CASE(exchange) { exchange_kernel<<<unsigned(call.size(0)), 32>>>(call.data<int>(0)); }

// Each block has its own shared memory and its own __syncthreads: block r loops r + 1 times, and half of its threads
// exit first. The cluster's barrier does not wait for these.
__global__ void __cluster_dims__(4, 1, 1) own_kernel(int* out) {
  __shared__ int sum;
  extern __shared__ int dynamic[];
  const int rank = hopper::cluster_rank();
  if (threadIdx.x >= 32) return;
  if (threadIdx.x == 0) sum = dynamic[0] = 0;
  for (int i = 0; i <= rank; ++i) {
    __syncthreads();
    atomicAdd(&sum, 1);
    atomicAdd(&dynamic[0], rank);
  }
  hopper::cluster_sync();
  if (threadIdx.x == 0) {
    out[2 * blockIdx.x] = sum;
    out[2 * blockIdx.x + 1] = dynamic[0];
  }
}

CASE(own) { own_kernel<<<unsigned(call.size(0)) / 2, 64, 16>>>(call.data<int>(0)); }

// A thread of each block arrives at the barriers of both, or of its own block only, and waits for its own, `times`
// times.
__global__ void __cluster_dims__(2, 1, 1) arrivals_kernel(int* out, int times, int everybody) {
  __shared__ hopper::Barrier barrier;
  if (threadIdx.x == 0) hopper::init(barrier, 2), hopper::fence_init();
  hopper::cluster_sync();
  const int rank = hopper::cluster_rank();
  for (int i = 0; i < times && threadIdx.x == 0; ++i) {
    for (int other = 0; other < 2; ++other)
      if (everybody || other == rank) hopper::arrive_at(other, barrier);
    hopper::wait(barrier, i % 2);
  }
  hopper::cluster_sync();
  if (threadIdx.x == 0) out[blockIdx.x] = times;
}

CASE(arrivals) { arrivals_kernel<<<2, 32>>>(call.data<int>(0), int(call.number(0)), int(call.number(1))); }

// Block 1 arrives at a barrier of block 0, which may have ended, or of a block that does not exist.
__global__ void __cluster_dims__(2, 1, 1) gone_kernel(int rank) {
  __shared__ hopper::Barrier barrier;
  if (threadIdx.x == 0) hopper::init(barrier, 32), hopper::fence_init();
  hopper::cluster_sync();
  if (hopper::cluster_rank() == 1) hopper::arrive_at(rank, barrier);
}

CASE(gone) { gone_kernel<<<2, 32>>>(int(call.number(0))); }

// The threads of block 0 wait at __syncthreads, except one, which waits for the cluster.
__global__ void __cluster_dims__(2, 1, 1) crossed_kernel() {
  if (blockIdx.x == 0 && threadIdx.x > 0)
    __syncthreads();
  else
    hopper::cluster_sync();
}

CASE(crossed) { crossed_kernel<<<2, 32>>>(); }

constexpr int kNine = 9;
__global__ void __cluster_dims__(kNine, 1, 1) nine_kernel(int* out) { out[blockIdx.x] = 1; }

CASE(nine) { nine_kernel<<<9, 32>>>(call.data<int>(0)); }

// Tiles of 8 x 64 elements of 16 bits. tensors: the matrix, which has `columns` columns; the two blocks' tiles.
constexpr int kTileRows = 8, kTileColumns = 64;
__device__ inline uint16_t& of_tile(char* tile, int i) {
  return *reinterpret_cast<uint16_t*>(tile + hopper::swizzled(2 * i));
}

// Block 0 loads the tile at (row, column) for both blocks, which write out their copies.
__global__ void __cluster_dims__(2, 1, 1)
    window_kernel(const __grid_constant__ hopper::TileMap map, uint16_t* out, int row, int column) {
  extern __shared__ __align__(1024) char tile[];
  __shared__ hopper::Barrier full;
  if (threadIdx.x == 0) hopper::init(full, 1), hopper::fence_init();
  hopper::cluster_sync();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileRows * hopper::kRowBytes);
    if (hopper::cluster_rank() == 0) hopper::load_tile_for(3, tile, map, full, row, column);
  }
  hopper::wait(full, 0);
  out += hopper::cluster_rank() * kTileRows * kTileColumns;
  for (int i = threadIdx.x; i < kTileRows * kTileColumns; i += blockDim.x) out[i] = of_tile(tile, i);
  hopper::cluster_sync();
}

CASE(window) {
  auto map = hopper::tile_map(call.data<uint16_t>(0), call.tensors[0].size(0), call.tensors[0].size(1), kTileRows);
  window_kernel<<<2, 32, kTileRows * hopper::kRowBytes>>>(map, call.data<uint16_t>(1), call.number(0), call.number(1));
}

// Stores the tile 0, 1, 2, ... at (row, column).
__global__ void paste_kernel(const __grid_constant__ hopper::TileMap map, int row, int column) {
  extern __shared__ __align__(1024) char tile[];
  for (int i = threadIdx.x; i < kTileRows * kTileColumns; i += blockDim.x) of_tile(tile, i) = i;
  hopper::fence_before_store();
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::store_tile(map, tile, row, column);
    hopper::store_commit();
    hopper::store_wait<0>();
  }
}

CASE(paste) {
  auto map = hopper::tile_map(call.data<uint16_t>(0), call.tensors[0].size(0), call.tensors[0].size(1), kTileRows);
  paste_kernel<<<1, 32, kTileRows * hopper::kRowBytes>>>(map, call.number(0), call.number(1));
}
