// museum/units.cu: Hopper's own units, TMA and mbarriers, used wrongly; a fixed twin beside each.
//
//   no_barrier_init   threads arrive at an mbarrier that nobody has initialised
//   one_arrival       one lane arrives for its whole warp: the other 31 may not have written yet
//   tile_too_soon     a tile that TMA brings is read before anybody has waited for it
//   no_proxy_fence    TMA stores a tile that threads have written, without a fence between
//   no_store_wait     the block ends, and TMA may still read its shared memory
//
// The arrows stand where a tool finds the bug. A race has two ends, and either may be named. Each broken kernel comes to
// an end on a GPU too: no thread waits for what may never come.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "hopper.h"
#include "launch.h"

using hopper::Barrier;
using hopper::bfloat16;
using hopper::TileMap;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 64;  // two warps
constexpr int kRows = 8, kColumns = 64, kNumbers = kRows * kColumns, kTileBytes = kNumbers * sizeof(bfloat16);
static_assert(kColumns * sizeof(bfloat16) == hopper::kRowBytes, "a row of a tile is one swizzled row");

// Where number i of a tile lies in shared memory. The tile begins at a multiple of 1,024 bytes.
__device__ inline int place(int i) { return hopper::swizzled(i * sizeof(bfloat16)) / sizeof(bfloat16); }
__device__ inline bfloat16 twice(bfloat16 x) { return __float2bfloat16(2.0f * __bfloat162float(x)); }

// ---------------------------------------------------------------------------------------------------------------------
// no_barrier_init: out = 2 * a, 32 floats; warp 0 brings them, warp 1 doubles them. `empty` would tell warp 0 that it may
// bring the next 32: there are none, so nobody waits for it.

__global__ void no_barrier_init_kernel(const float* a, float* out) {
  __shared__ float row[32];
  __shared__ Barrier full, empty;
  if (threadIdx.x == 0) hopper::init(full, 32);
  __syncthreads();
  int i = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    row[i] = a[i];
    hopper::arrive(full);
  } else {
    hopper::wait(full, 0);
    out[i] = 2 * row[i];
    hopper::arrive(empty);  // <- uninitialised-read
  }
}

__global__ void no_barrier_init_fixed_kernel(const float* a, float* out) {
  __shared__ float row[32];
  __shared__ Barrier full, empty;
  if (threadIdx.x == 0) hopper::init(full, 32), hopper::init(empty, 32);
  __syncthreads();  // both are initialised
  int i = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    row[i] = a[i];
    hopper::arrive(full);
  } else {
    hopper::wait(full, 0);
    out[i] = 2 * row[i];
    hopper::arrive(empty);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// one_arrival: out = a in reverse, 32 floats; warp 0 writes them, warp 1 reads them

__global__ void one_arrival_kernel(const float* a, float* out) {
  __shared__ float row[32];
  __shared__ Barrier full;
  if (threadIdx.x == 0) hopper::init(full, 1);
  __syncthreads();
  int i = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    row[i] = a[i];  // <- race
    if (i == 0) hopper::arrive(full);
  } else {
    hopper::wait(full, 0);
    out[i] = row[31 - i];  // <- race
  }
}

__global__ void one_arrival_fixed_kernel(const float* a, float* out) {
  __shared__ float row[32];
  __shared__ Barrier full;
  if (threadIdx.x == 0) hopper::init(full, 32);
  __syncthreads();
  int i = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    row[i] = a[i];
    hopper::arrive(full);  // each thread speaks for what it has written
  } else {
    hopper::wait(full, 0);
    out[i] = row[31 - i];
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// tile_too_soon: out = 2 * a, a tile for each block; TMA brings it, threads write

__global__ void tile_too_soon_kernel(const __grid_constant__ TileMap from, bfloat16* out) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  __shared__ Barrier full;
  if (threadIdx.x == 0) hopper::init(full, 1), hopper::fence_init();
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile, from, full, blockIdx.x * kRows, 0);  // <- race
  }
  __syncthreads();  // the tile has been asked for: it need not be there
  for (int i = threadIdx.x; i < kNumbers; i += kThreads) {
    out[blockIdx.x * kNumbers + i] = twice(tile[place(i)]);  // <- race
  }
  hopper::wait(full, 0);  // too late; but no load outlives its block
}

__global__ void tile_too_soon_fixed_kernel(const __grid_constant__ TileMap from, bfloat16* out) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  __shared__ Barrier full;
  if (threadIdx.x == 0) hopper::init(full, 1), hopper::fence_init();
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile, from, full, blockIdx.x * kRows, 0);
  }
  hopper::wait(full, 0);  // all its bytes are there
  for (int i = threadIdx.x; i < kNumbers; i += kThreads) {
    out[blockIdx.x * kNumbers + i] = twice(tile[place(i)]);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// no_proxy_fence: out = 2 * a, a tile for each block; threads read, TMA stores it

__global__ void no_proxy_fence_kernel(const bfloat16* a, const __grid_constant__ TileMap to) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  for (int i = threadIdx.x; i < kNumbers; i += kThreads) {
    tile[place(i)] = twice(a[blockIdx.x * kNumbers + i]);  // <- race
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::store_tile(to, tile, blockIdx.x * kRows, 0);  // <- race
    hopper::store_commit();
    hopper::store_wait<0>();
  }
}

__global__ void no_proxy_fence_fixed_kernel(const bfloat16* a, const __grid_constant__ TileMap to) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  for (int i = threadIdx.x; i < kNumbers; i += kThreads) {
    tile[place(i)] = twice(a[blockIdx.x * kNumbers + i]);
  }
  hopper::fence_before_store();  // what this thread wrote reaches TMA's proxy
  __syncthreads();               // and all have come to here
  if (threadIdx.x == 0) {
    hopper::store_tile(to, tile, blockIdx.x * kRows, 0);
    hopper::store_commit();
    hopper::store_wait<0>();
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// no_store_wait: out = a, a tile for each block; TMA brings it and stores it, no thread touches it

__global__ void no_store_wait_kernel(const __grid_constant__ TileMap from, const __grid_constant__ TileMap to) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  __shared__ Barrier full;
  if (threadIdx.x == 0) hopper::init(full, 1), hopper::fence_init();
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile, from, full, blockIdx.x * kRows, 0);
    hopper::wait(full, 0);
    hopper::store_tile(to, tile, blockIdx.x * kRows, 0);  // <- race
    hopper::store_commit();
  }
}

__global__ void no_store_wait_fixed_kernel(const __grid_constant__ TileMap from, const __grid_constant__ TileMap to) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  __shared__ Barrier full;
  if (threadIdx.x == 0) hopper::init(full, 1), hopper::fence_init();
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile, from, full, blockIdx.x * kRows, 0);
    hopper::wait(full, 0);
    hopper::store_tile(to, tile, blockIdx.x * kRows, 0);
    hopper::store_commit();
    hopper::store_wait<0>();  // the tile has been read: the next block on this multiprocessor may have the memory
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Launchers: each passes pointers or tile maps and a stream to the launch that it is given.

// One block, 32 floats.
template <typename Launch>
Tensor by_two_warps(const Tensor& a, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Float);
  STD_TORCH_CHECK(a.numel() == 32, "a must have 32 elements, got ", a.numel());
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  launch(ladder::current_stream(a), a.const_data_ptr<float>(), out.mutable_data_ptr<float>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor no_barrier_init(const Tensor& a) {
  return by_two_warps(a, [](cudaStream_t stream, auto... arguments) {
    no_barrier_init_kernel<<<1, kThreads, 0, stream>>>(arguments...);
  });
}
Tensor no_barrier_init_fixed(const Tensor& a) {
  return by_two_warps(a, [](cudaStream_t stream, auto... arguments) {
    no_barrier_init_fixed_kernel<<<1, kThreads, 0, stream>>>(arguments...);
  });
}
Tensor one_arrival(const Tensor& a) {
  return by_two_warps(
      a, [](cudaStream_t stream, auto... arguments) { one_arrival_kernel<<<1, kThreads, 0, stream>>>(arguments...); });
}
Tensor one_arrival_fixed(const Tensor& a) {
  return by_two_warps(a, [](cudaStream_t stream, auto... arguments) {
    one_arrival_fixed_kernel<<<1, kThreads, 0, stream>>>(arguments...);
  });
}

bfloat16* numbers(const Tensor& t) { return static_cast<bfloat16*>(t.data_ptr()); }
TileMap tiles(const Tensor& t) { return hopper::tile_map(t.data_ptr(), t.size(0), kColumns, kRows); }

// A block for each tile of a: 8 rows of 64 bfloat16.
template <typename Launch>
Tensor by_tiles(const Tensor& a, Launch launch) {
  ladder::check_input(a, "a", ScalarType::BFloat16);
  STD_TORCH_CHECK(a.dim() == 2 && a.size(1) == kColumns && a.size(0) % kRows == 0, "a must have rows of ", kColumns,
                  ", a multiple of ", kRows, " of them; got ", ladder::shape_of(a));
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  if (a.numel() == 0) return out;
  launch(a.size(0) / kRows, ladder::current_stream(a), a, out);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor tile_too_soon(const Tensor& a) {
  return by_tiles(a, [](int64_t blocks, cudaStream_t stream, const Tensor& from, const Tensor& to) {
    tile_too_soon_kernel<<<blocks, kThreads, 0, stream>>>(tiles(from), numbers(to));
  });
}
Tensor tile_too_soon_fixed(const Tensor& a) {
  return by_tiles(a, [](int64_t blocks, cudaStream_t stream, const Tensor& from, const Tensor& to) {
    tile_too_soon_fixed_kernel<<<blocks, kThreads, 0, stream>>>(tiles(from), numbers(to));
  });
}
Tensor no_proxy_fence(const Tensor& a) {
  return by_tiles(a, [](int64_t blocks, cudaStream_t stream, const Tensor& from, const Tensor& to) {
    no_proxy_fence_kernel<<<blocks, kThreads, 0, stream>>>(numbers(from), tiles(to));
  });
}
Tensor no_proxy_fence_fixed(const Tensor& a) {
  return by_tiles(a, [](int64_t blocks, cudaStream_t stream, const Tensor& from, const Tensor& to) {
    no_proxy_fence_fixed_kernel<<<blocks, kThreads, 0, stream>>>(numbers(from), tiles(to));
  });
}
Tensor no_store_wait(const Tensor& a) {
  return by_tiles(a, [](int64_t blocks, cudaStream_t stream, const Tensor& from, const Tensor& to) {
    no_store_wait_kernel<<<blocks, kThreads, 0, stream>>>(tiles(from), tiles(to));
  });
}
Tensor no_store_wait_fixed(const Tensor& a) {
  return by_tiles(a, [](int64_t blocks, cudaStream_t stream, const Tensor& from, const Tensor& to) {
    no_store_wait_fixed_kernel<<<blocks, kThreads, 0, stream>>>(tiles(from), tiles(to));
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: each exhibit and its fixed twin

#define EXHIBITS(each) \
  each(no_barrier_init) each(one_arrival) each(tile_too_soon) each(no_proxy_fence) each(no_store_wait)
#define DEFINE(name) m.def(#name "(Tensor a) -> Tensor"), m.def(#name "_fixed(Tensor a) -> Tensor");
#define IMPLEMENT(name) m.impl(#name, TORCH_BOX(&name)), m.impl(#name "_fixed", TORCH_BOX(&name##_fixed));

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { EXHIBITS(DEFINE); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { EXHIBITS(IMPLEMENT); }
