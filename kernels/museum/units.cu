// museum/units.cu: Hopper's own units, TMA and mbarriers, used wrongly; each bug has a
// fixed twin.
//
//   no_barrier_init   threads arrive at an mbarrier that no thread has initialised
//   one_arrival       one lane arrives for its whole warp: the other 31 may not have
//                     written yet
//   tile_too_soon     threads read a tile that TMA loads before they have waited for it
//   no_proxy_fence    TMA stores a tile that threads have written, without a fence in
//                     between
//   no_store_wait     the block ends while TMA may still read its shared memory
//
// The arrows mark where a tool finds the bug. A race has two ends, and a tool may name
// either. On a GPU the broken kernels end too: no thread waits for an arrival that may
// never happen.
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
constexpr int kRows = 8, kColumns = 64, kNumbers = kRows * kColumns,
              kTileBytes = kNumbers * sizeof(bfloat16);
static_assert(kColumns * sizeof(bfloat16) == hopper::kRowBytes,
              "a row of a tile is one swizzled row");

// Where element i of a tile is in shared memory. The tile begins at a multiple of 1,024
// bytes.
__device__ inline int place(int i) {
  return hopper::swizzled(i * sizeof(bfloat16)) / sizeof(bfloat16);
}
__device__ inline bfloat16 twice(bfloat16 x) {
  return __float2bfloat16(2.0f * __bfloat162float(x));
}

// -------------------------------------------------------------------------------------
// no_barrier_init: out = 2 * a, 32 floats; warp 0 copies them, warp 1 doubles them.
// `empty` would tell warp 0 that it may copy the next 32: there are none, so no thread
// waits for it.

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
  if (threadIdx.x == 0) {
    hopper::init(full, 32);
    hopper::init(empty, 32);
  }
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

// -------------------------------------------------------------------------------------
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
    hopper::arrive(full);  // each thread arrives after its own write
  } else {
    hopper::wait(full, 0);
    out[i] = row[31 - i];
  }
}

// -------------------------------------------------------------------------------------
// tile_too_soon: out = 2 * a, one tile per block; TMA loads it, threads write

__global__ void tile_too_soon_kernel(const __grid_constant__ TileMap from,
                                     bfloat16* out) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    hopper::init(full, 1);
    hopper::fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile, from, full, blockIdx.x * kRows, 0);  // <- race
  }
  __syncthreads();  // the tile has been requested; it may not have arrived
  for (int i = threadIdx.x; i < kNumbers; i += kThreads) {
    out[blockIdx.x * kNumbers + i] = twice(tile[place(i)]);  // <- race
  }
  hopper::wait(full, 0);  // too late, but no load outlives its block
}

__global__ void tile_too_soon_fixed_kernel(const __grid_constant__ TileMap from,
                                           bfloat16* out) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    hopper::init(full, 1);
    hopper::fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile, from, full, blockIdx.x * kRows, 0);
  }
  hopper::wait(full, 0);  // all its bytes have arrived
  for (int i = threadIdx.x; i < kNumbers; i += kThreads) {
    out[blockIdx.x * kNumbers + i] = twice(tile[place(i)]);
  }
}

// -------------------------------------------------------------------------------------
// no_proxy_fence: out = 2 * a, one tile per block; threads read, TMA stores it

__global__ void no_proxy_fence_kernel(const bfloat16* a,
                                      const __grid_constant__ TileMap to) {
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

__global__ void no_proxy_fence_fixed_kernel(const bfloat16* a,
                                            const __grid_constant__ TileMap to) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  for (int i = threadIdx.x; i < kNumbers; i += kThreads) {
    tile[place(i)] = twice(a[blockIdx.x * kNumbers + i]);
  }
  hopper::fence_before_store();  // makes this thread's writes visible to TMA
  __syncthreads();               // and all threads have done so
  if (threadIdx.x == 0) {
    hopper::store_tile(to, tile, blockIdx.x * kRows, 0);
    hopper::store_commit();
    hopper::store_wait<0>();
  }
}

// -------------------------------------------------------------------------------------
// no_store_wait: out = a, one tile per block; TMA loads it and stores it, no thread
// touches it

__global__ void no_store_wait_kernel(const __grid_constant__ TileMap from,
                                     const __grid_constant__ TileMap to) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    hopper::init(full, 1);
    hopper::fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile, from, full, blockIdx.x * kRows, 0);
    hopper::wait(full, 0);
    hopper::store_tile(to, tile, blockIdx.x * kRows, 0);  // <- race
    hopper::store_commit();
  }
}

__global__ void no_store_wait_fixed_kernel(const __grid_constant__ TileMap from,
                                           const __grid_constant__ TileMap to) {
  __shared__ __align__(1024) bfloat16 tile[kNumbers];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    hopper::init(full, 1);
    hopper::fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    hopper::arrive_and_expect(full, kTileBytes);
    hopper::load_tile(tile, from, full, blockIdx.x * kRows, 0);
    hopper::wait(full, 0);
    hopper::store_tile(to, tile, blockIdx.x * kRows, 0);
    hopper::store_commit();
    // The tile has been read: the SM may give the memory to its next block.
    hopper::store_wait<0>();
  }
}

// -------------------------------------------------------------------------------------
// Launchers. An exhibit's function only launches its kernel; `run` makes an operator of
// it, Tensor -> Tensor.

// The arguments of a kernel of one block: 32 floats.
struct Row {
  cudaStream_t stream;
  const float* a;
  float* out;

  static void check(const Tensor& a) {
    ladder::check_input(a, "a", ScalarType::Float);
    STD_TORCH_CHECK(a.numel() == 32, "a must have 32 elements, got ", a.numel());
  }
  Row(const Tensor& a, Tensor& out, cudaStream_t stream)
      : stream(stream),
        a(a.const_data_ptr<float>()),
        out(out.mutable_data_ptr<float>()) {}
};

// Those of a kernel with a block for each tile of a: 8 rows of 64 bfloat16. A matrix is
// passed as a pointer or as a map.
struct Tiles {
  int64_t blocks;
  cudaStream_t stream;
  const bfloat16* a;
  bfloat16* out;
  TileMap from, to;

  static void check(const Tensor& a) {
    ladder::check_input(a, "a", ScalarType::BFloat16);
    STD_TORCH_CHECK(a.dim() == 2 && a.size(1) == kColumns && a.size(0) % kRows == 0,
                    "a must have rows of ", kColumns, ", a multiple of ", kRows,
                    " of them; got ", ladder::shape_of(a));
  }
  static TileMap map(const Tensor& t) {
    return hopper::tile_map(t.data_ptr(), t.size(0), kColumns, kRows);
  }
  Tiles(const Tensor& a, Tensor& out, cudaStream_t stream)
      : blocks(a.size(0) / kRows),
        stream(stream),
        a(static_cast<const bfloat16*>(a.data_ptr())),
        out(static_cast<bfloat16*>(out.data_ptr())),
        from(map(a)),
        to(map(out)) {}
};

template <typename Arguments, void (*launch)(Arguments)>
Tensor run(const Tensor& a) {
  Arguments::check(a);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  if (a.numel() == 0) return out;
  launch(Arguments(a, out, ladder::current_stream(a)));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

void no_barrier_init(Row r) {
  no_barrier_init_kernel<<<1, kThreads, 0, r.stream>>>(r.a, r.out);
}
void no_barrier_init_fixed(Row r) {
  no_barrier_init_fixed_kernel<<<1, kThreads, 0, r.stream>>>(r.a, r.out);
}
void one_arrival(Row r) {
  one_arrival_kernel<<<1, kThreads, 0, r.stream>>>(r.a, r.out);
}
void one_arrival_fixed(Row r) {
  one_arrival_fixed_kernel<<<1, kThreads, 0, r.stream>>>(r.a, r.out);
}
void tile_too_soon(Tiles t) {
  tile_too_soon_kernel<<<t.blocks, kThreads, 0, t.stream>>>(t.from, t.out);
}
void tile_too_soon_fixed(Tiles t) {
  tile_too_soon_fixed_kernel<<<t.blocks, kThreads, 0, t.stream>>>(t.from, t.out);
}
void no_proxy_fence(Tiles t) {
  no_proxy_fence_kernel<<<t.blocks, kThreads, 0, t.stream>>>(t.a, t.to);
}
void no_proxy_fence_fixed(Tiles t) {
  no_proxy_fence_fixed_kernel<<<t.blocks, kThreads, 0, t.stream>>>(t.a, t.to);
}
void no_store_wait(Tiles t) {
  no_store_wait_kernel<<<t.blocks, kThreads, 0, t.stream>>>(t.from, t.to);
}
void no_store_wait_fixed(Tiles t) {
  no_store_wait_fixed_kernel<<<t.blocks, kThreads, 0, t.stream>>>(t.from, t.to);
}

// -------------------------------------------------------------------------------------
// Registration: each exhibit and its fixed twin

#define EXHIBITS(each)                                                         \
  each(no_barrier_init, Row) each(one_arrival, Row) each(tile_too_soon, Tiles) \
      each(no_proxy_fence, Tiles) each(no_store_wait, Tiles)
#define DEFINE(name, arguments)        \
  m.def(#name "(Tensor a) -> Tensor"); \
  m.def(#name "_fixed(Tensor a) -> Tensor");
#define IMPLEMENT(name, arguments)                   \
  m.impl(#name, TORCH_BOX((&run<arguments, name>))); \
  m.impl(#name "_fixed", TORCH_BOX((&run<arguments, name##_fixed>)));

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { EXHIBITS(DEFINE); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { EXHIBITS(IMPLEMENT); }
