// validation/tiles.cu: micro-kernels in which the Tensor Memory Accelerator (TMA) of compute capability 9.0 moves one tile.
//
// They are counted like the kernels of access.cu. A tile has `rows` rows of 64 elements of 2 bytes.
//
//   micro_tile_load    the first of two blocks loads a tile, for itself (blocks = 0) or for the blocks whose rank
//                      is a bit of `blocks`
//   micro_tile_store   a block stores a tile of zeros

#include <torch/csrc/stable/library.h>

#include "hopper.h"
#include "launch.h"

using hopper::Barrier;
using hopper::TileMap;
using torch::stable::Tensor;

constexpr int kSharedBytes = 1024 + 256 * hopper::kRowBytes + 1024;  // a barrier; the largest tile; where it may begin

// Where a tile may lie in dynamic shared memory: at the first multiple of 1,024 bytes after a barrier.
__device__ inline char* tile_in(char* memory) { return memory + 2048 - (hopper::shared_address(memory) + 1024) % 1024; }

// ---------------------------------------------------------------------------------------------------------------------
// Kernels, of 32 threads

__global__ void __cluster_dims__(2, 1, 1)
    micro_tile_load_kernel(const __grid_constant__ TileMap map, int rows, int row, int column, int blocks) {
  extern __shared__ __align__(1024) char memory[];
  Barrier& full = *reinterpret_cast<Barrier*>(memory);
  if (threadIdx.x == 0) {
    hopper::init(full, 1);
    hopper::fence_init();
  }
  hopper::cluster_sync();
  int rank = hopper::cluster_rank();
  if (threadIdx.x == 0) {
    bool receives = (blocks ? blocks : 1) >> rank & 1;
    if (receives) hopper::arrive_and_expect(full, rows * hopper::kRowBytes);
    if (rank == 0 && blocks == 0) hopper::load_tile(tile_in(memory), map, full, row, column);
    if (rank == 0 && blocks != 0) hopper::load_tile_for(blocks, tile_in(memory), map, full, row, column);
    if (receives) hopper::wait(full, 0);
  }
  hopper::cluster_sync();
}

__global__ void micro_tile_store_kernel(const __grid_constant__ TileMap map, int rows, int row, int column) {
  extern __shared__ __align__(1024) char memory[];
  char* tile = tile_in(memory);
#pragma unroll 1  // nvcc would add requests without a lane, which ncu counts
  for (int i = threadIdx.x; i < rows * hopper::kRowBytes / 16; i += 32) reinterpret_cast<uint4*>(tile)[i] = {};
  hopper::fence_before_store();
  __syncwarp();
  if (threadIdx.x == 0) {
    hopper::store_tile(map, tile, row, column);
    hopper::store_commit();
    hopper::store_wait<0>();
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher. matrix: bfloat16; (row, column) is where the tile begins in it.

void micro_tile(Tensor matrix, int64_t rows, int64_t row, int64_t column, int64_t blocks, bool store) {
  auto guard = ladder::on_device_of(matrix);
  cudaStream_t stream = ladder::current_stream(matrix);
  TileMap map = hopper::tile_map(matrix.data_ptr(), matrix.size(0), matrix.size(1), rows);
  if (store) {
    micro_tile_store_kernel<<<1, 32, kSharedBytes, stream>>>(map, rows, row, column);
  } else {
    micro_tile_load_kernel<<<2, 32, kSharedBytes, stream>>>(map, rows, row, column, blocks);
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("micro_tile(Tensor(a!) matrix, int rows, int row, int column, int blocks, bool store) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("micro_tile", TORCH_BOX(&micro_tile)); }
