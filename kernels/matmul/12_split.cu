// 12_split.cu: matmul_cluster for large products, and for small ones a kernel that gives every SM work. One rung.
//
// 1024 x 1024 elements of c are 32 tiles of 128 x 256, for 132 SMs. A tile of 128 x 128 makes 64 of them, but a smaller
// one costs more than it brings: wgmma reads its factors from shared memory, and for 64 columns takes as long to read
// as to multiply. So the sums are split too: the two blocks of a cluster have one tile, and each multiplies one half of
// k. Then each sends the other 64 columns of its sums, straight into the other's shared memory, and adds up and writes
// 64 columns. Every element is the sum of the same two halves in each run, so results repeat bit for bit.
//
//   matmul_split: of three forms, the first whose blocks all run at once: a cluster for each 128 x 128 of c; a block for
//   each; the clusters of matmul_cluster, each for 256 x 256, which may run one after the other
//
// This is a file of its own because a block has one tile and two barriers of the cluster instead of a persistent loop.
//
// What limits it: latency. At 1024 x 1024 x 1024 a block has eight steps of 512 cycles; the launch, the first loads and
// the exchange have nothing to hide behind.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#define LADDER_NO_OPERATORS
#include "../matmul/12_cluster.cu"

#include <cooperative_groups.h>

#include "hopper_wgmma.h"

namespace small {

constexpr int kN = 128, kPanels = kN / kPanel, kStages = 6;
constexpr int kPairs = 2;                         // blocks that share a tile, if they do
constexpr int kSums = kN / 2, kSent = kSums / 2;  // of a thread
using Stage = hopper::StageOf<kPanels>;
using Place = hopper::PlaceOf<kStages>;
static_assert(kPanels == kPairs, "each block of a pair writes one panel");

struct Shared : hopper::RingOf<Stage, kStages> {};

// The sums that the other block sends, where the stages were: thread by thread, so that no bank conflicts.
using Received = float4[kSent / 4][kConsumers * kWarpGroup];
static_assert(sizeof(Received) <= sizeof(Shared::stages));

// A block's part of the work: the tile of c that begins at (row, column), and steps first to end - 1 along k, at least one.
struct Work {
  int row, column, first, end;
};

// One thread. Requests the tiles for every step as soon as a stage is empty.
__device__ void produce(Shared& shared, const TileMap& a, const TileMap& b, const Work& work) {
  Place place;
  for (int step = work.first; step < work.end; ++step, place.advance()) {
    Stage& stage = shared.stages[place.stage];
    Barrier& full = shared.full[place.stage];
    hopper::wait(shared.empty[place.stage], place.parity ^ 1);  // at first there is no phase to wait for
    hopper::arrive_and_expect(full, sizeof(Stage));
    hopper::load_tile(stage.a, a, full, work.row, step * kK);
    for (int p = 0; p < kPanels; ++p) hopper::load_tile(stage.b[p], b, full, step * kK, work.column + p * kPanel);
  }
}

// A warp group. d = the products that the producer loads, of 64 of the tile's rows, selected by `which`, 0 or 1.
__device__ __forceinline__ void multiply(float (&d)[kSums], Shared& shared, int which, const Work& work) {
  Place place;
  int before = -1;  // the stage whose products may still be running
  for (int step = work.first; step < work.end; ++step, place.advance()) {
    Stage& stage = shared.stages[place.stage];
    hopper::wait(shared.full[place.stage], place.parity);
    uint64_t a = hopper::descriptor(stage.a[which * 64], 16);
    uint64_t b = hopper::descriptor(stage.b, sizeof(stage.b[0]));
    hopper::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK / 16; ++k)
      hopper::wgmma_shared<kN, false, true>(d, a + k * (32 >> 4), b + k * (16 * hopper::kRowBytes >> 4),
                                            step > work.first || k > 0);
    hopper::wgmma_commit();
    hopper::wgmma_wait<1>();
    if (before >= 0 && threadIdx.x % kWarpGroup == 0) hopper::arrive(shared.empty[before]);
    before = place.stage;
  }
  hopper::wgmma_wait_for<0>(d);
}

// A thread of a pair: sends one half of its sums to the other block, and returns the other half with the sums added that
// it receives. rank 0 keeps the first panel.
__device__ __forceinline__ void exchange(float (&kept)[kSent], const float (&d)[kSums], Shared& shared, int rank) {
  auto& received = reinterpret_cast<Received&>(shared.stages);
  int thread = threadIdx.x - kWarpGroup;
  float4* to = cooperative_groups::this_cluster().map_shared_rank(&received[0][thread], rank ^ 1);
  hopper::cluster_sync();  // the other block has multiplied all that is in its stages
#pragma unroll
  for (int i = 0; i < kSent / 4; ++i) {
    const float *low = &d[4 * i], *high = &d[kSent + 4 * i];
    to[i * kConsumers * kWarpGroup] =
        rank ? make_float4(low[0], low[1], low[2], low[3]) : make_float4(high[0], high[1], high[2], high[3]);
  }
  hopper::cluster_sync();  // both have sent
#pragma unroll
  for (int i = 0; i < kSent / 4; ++i) {
    float4 four = received[i][thread];
    const float more[] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) kept[4 * i + j] = (rank ? d[kSent + 4 * i + j] : d[4 * i + j]) + more[j];
  }
}

// a: m x k, b: k x n, c: m x n, all row-major. blocks: for a tile, 1 or 2. steps: how many times kK it takes to cover k.
template <int blocks>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(kThreads, 1)
    matmul_split_kernel(const __grid_constant__ TileMap a, const __grid_constant__ TileMap b, bfloat16* c, int m, int n,
                        int rows, int columns, int steps) {
  extern __shared__ __align__(1024) char memory[];
  Shared& shared = hopper::aligned<Shared>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch(a);
    hopper::prefetch(b);
    shared.init(kConsumers);
    hopper::fence_init();
  }
  __syncthreads();  // the barriers are initialised
  int rank = blockIdx.x % blocks;
  hopper::TileIndex tile(blockIdx.x / blocks, rows, columns, kGroup);
  Work work{tile.row * kM, tile.column * kN, rank * steps / blocks, (rank + 1) * steps / blocks};
  int group = threadIdx.x / kWarpGroup, which = group - 1;
  if (group == 0) {
    hopper::keep_registers<40>();
    if (threadIdx.x == 0) produce(shared, a, b, work);
    if constexpr (blocks > 1) {
      hopper::cluster_sync();  // as in exchange
      hopper::cluster_sync();
    }
    return;
  }
  hopper::take_registers<232>();
  float d[kSums];
  multiply(d, shared, which, work);
  if constexpr (blocks == 1) {
    hopper::write(d, c, work.row + which * 64, work.column, m, n);
  } else {
    float kept[kSent];
    exchange(kept, d, shared, rank);
    hopper::write(kept, c, work.row + which * 64, work.column + rank * kPanel, m, n);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

template <int blocks>
Tensor run(const Tensor& a, const Tensor& b) {
  auto launch = [&](const hopper::Operands& o, int, cudaStream_t stream) {
    int m = o.size.m, n = o.size.n, rows = ceil_div(m, kM), columns = ceil_div(n, kN);
    matmul_split_kernel<blocks><<<rows * columns * blocks, kThreads, hopper::kSharedBytes<Shared>, stream>>>(
        o.a, o.b, o.c, m, n, rows, columns, ceil_div(o.size.k, kK));
  };
  return hopper::matmul<Shared>(a, b, kM, matmul_split_kernel<blocks>, launch);
}

}  // namespace small

Tensor matmul_split(const Tensor& a, const Tensor& b) {
  auto size = ladder::check_matmul<ladder::BFloat16>(a, b, ladder::Layout::row_major);
  auto guard = ladder::on_device_of(a);
  int64_t tiles = ceil_div(size.m, kM) * ceil_div(size.n, small::kN);
  int sms = ladder::device_attribute(cudaDevAttrMultiProcessorCount);
  if (tiles * small::kPairs <= sms && size.k > kK) return small::run<small::kPairs>(a, b);
  if (tiles <= sms) return small::run<1>(a, b);
  return run<Leave::overlapped>(a, b);
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("matmul_split(Tensor a, Tensor b) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("matmul_split", TORCH_BOX(&matmul_split)); }
