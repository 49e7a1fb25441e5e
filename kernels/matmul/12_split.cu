// 12_split.cu: matmul_cluster for large products, and for small ones a kernel that
// gives every SM work. One rung.
//
// 1024 x 1024 elements of c are 32 tiles of 128 x 256, for 132 SMs. Tiles of 64 x 128
// are 128. But the smaller a tile, the more of a and b must be read for it, from the L2
// cache and from shared memory. So the blocks of a cluster share the loads: it has rows
// x columns tiles, blocks in one row need the same tile of a, blocks in one column the
// same of b, and each loads its share of it for all of them. With 4 x 2 a block
// requests 4 KB of each for 64 along k, instead of 8 KB of a and 16 KB of b. But the
// larger a cluster, the fewer fit on a GPU, whose SMs come in groups of unequal size:
// 128 blocks run at once on an H200 in clusters of 2, not of 4. One warp group
// multiplies a tile: two would read b from shared memory twice.
//
// If there are fewer tiles still, the sums are split too: two blocks have one tile, and
// each multiplies one half of k. Then each sends the other 64 columns of its sums,
// straight into the other's shared memory, and adds up and writes 64 columns. Every
// element is the sum of the same two halves in each run, so results repeat bit for bit.
//
//   matmul_split: of several configurations, the first whose clusters all run at once;
//   else matmul_cluster, whose clusters may run one after the other
//
// This is a file of its own because a block has one tile, and no persistent loop.
//
// What limits it: at 1024 x 1024 x 1024 a block has 16 steps of 256 cycles. Half of its
// time are the launch, the first loads and the results, with nothing to hide behind;
// the steps wait for the L2 cache.
//
// On an H200 it has 100% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#define LADDER_NO_OPERATORS
#include "../matmul/12_cluster.cu"

#include "hopper_bulk.h"
#include "hopper_wgmma.h"
#include "row.h"

namespace small {

constexpr int kN = 128, kPanels = kN / kPanel;
// Rows of a group: clusters that run together share rows of a and columns of b.
constexpr int kClusterRows = 4;
constexpr int kLines = kPanels * kK;  // of a stage's tile of b, 128 bytes each
constexpr int kSums = kN / 2, kSent = kSums / 2;  // of a thread

// A block multiplies with `groups` warp groups, 64 rows each. A cluster has rows x
// columns tiles, and `splits` blocks for each of them, 1 or 2.
template <int groups_, int rows_, int columns_, int splits_>
struct Config {
  static constexpr int groups = groups_, rows = rows_, columns = columns_,
                       splits = splits_;
  static constexpr int m = groups * 64, tiles = rows * columns, blocks = tiles * splits;
  static constexpr int threads = (groups + 1) * kWarpGroup;
  // Lines that a block loads.
  static constexpr int share_a = m / columns, share_b = kLines / rows;
  static constexpr int box_b = std::min(share_b, kK);  // lines in one request

  struct Stage {
    bfloat16 a[m][kK];           // row-major
    bfloat16 b[kLines][kPanel];  // panel by panel, each row-major
  };
  static_assert(share_a % 8 == 0 && box_b % 8 == 0,
                "shares begin where the swizzle's pattern begins");
  static constexpr int stages = groups == 1 ? 8 : 6;
  using PipelineState = hopper::PipelineStateOf<stages>;

  // Sums that a warp sends, lane by lane: no bank conflicts.
  using Sums = float4[kSent / 4][32];
  struct Shared : hopper::RingOf<Stage, stages> {
    alignas(128) Sums received[splits > 1 ? groups * 4 : 1];
    // The other block's sums have arrived; the other block has received this block's.
    Barrier sums_full, sums_empty;
  };
};

// What a block computes: the tile of c that begins at (row, column), and steps first to
// end - 1 along k, at least one.
struct WorkTile {
  int row, column, first, end;
  int share_a, share_b;  // where the lines begin that it loads
  // Blocks that need the same tile: a bit for each rank.
  uint16_t blocks_of_a, blocks_of_b;
};

template <typename F>
__device__ WorkTile work_tile(int rank, hopper::TileIndex cluster, int steps) {
  int row = rank % F::rows, column = rank / F::rows % F::columns,
      part = rank / F::tiles, first = part * F::tiles;
  WorkTile work;
  work.row = (cluster.row * F::rows + row) * F::m;
  work.column = (cluster.column * F::columns + column) * kN;
  work.first = part * steps / F::splits, work.end = (part + 1) * steps / F::splits;
  work.share_a = column * F::share_a, work.share_b = row * F::share_b;
  work.blocks_of_a = work.blocks_of_b = 0;
  for (int i = 0; i < F::columns; ++i)
    work.blocks_of_a |= 1 << (first + i * F::rows + row);
  for (int i = 0; i < F::rows; ++i)
    work.blocks_of_b |= 1 << (first + column * F::rows + i);
  return work;
}

// -------------------------------------------------------------------------------------
// Kernel

// One thread. Requests its shares for every step as soon as a stage is empty in all
// blocks that need them. A block receives sizeof(Stage) bytes, most of them from
// others.
template <typename F>
__device__ void produce(typename F::Shared& shared, const TileMap& a, const TileMap& b,
                        const WorkTile& work) {
  typename F::PipelineState pipe;
  for (int step = work.first; step < work.end; ++step, pipe.advance()) {
    auto& stage = shared.stages[pipe.stage];
    Barrier& full = shared.full[pipe.stage];
    // At first there is no phase to wait for.
    hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);
    hopper::arrive_and_expect(full, sizeof(stage));
    if constexpr (F::columns == 1) {
      hopper::load_tile(stage.a, a, full, work.row, step * kK);
    } else {
      hopper::load_tile_for(work.blocks_of_a, stage.a[work.share_a], a, full,
                            work.row + work.share_a, step * kK);
    }
    for (int line = work.share_b; line < work.share_b + F::share_b; line += F::box_b)
      hopper::load_tile_for(work.blocks_of_b, stage.b[line], b, full,
                            step * kK + line % kK, work.column + line / kK * kPanel);
  }
}

// A warp group. d = the products that the producers load, of 64 of the tile's rows,
// selected by `group`.
template <typename F>
__device__ __forceinline__ void multiply(float (&d)[kSums], typename F::Shared& shared,
                                         int group, const WorkTile& work) {
  typename F::PipelineState pipe;
  // before: the stage whose products may still be running.
  int before = -1, thread = threadIdx.x % kWarpGroup;
  bool arrives =
      thread < F::blocks && ((work.blocks_of_a | work.blocks_of_b) >> thread & 1);
  for (int step = work.first; step < work.end; ++step, pipe.advance()) {
    auto& stage = shared.stages[pipe.stage];
    hopper::wait(shared.full[pipe.stage], pipe.parity);
    uint64_t a = hopper::descriptor(stage.a[group * 64], 16);
    uint64_t b = hopper::descriptor(stage.b, sizeof(stage.b) / kPanels);
    hopper::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK / 16; ++k)
      hopper::wgmma_shared<kN, false, true>(d, a + k * (32 >> 4),
                                            b + k * (16 * hopper::kRowBytes >> 4),
                                            step > work.first || k > 0);
    hopper::wgmma_commit();
    hopper::wgmma_wait<1>();
    // One thread for each block that loads into the stage arrives there, if a load is
    // still to come. Then that block has not ended, and no barrier of the cluster is
    // needed at the end.
    bool awaited = before >= 0 && step - 1 + F::stages < work.end;
    if (awaited && arrives) hopper::arrive_at(thread, shared.empty[before]);
    before = pipe.stage;
  }
  hopper::wgmma_wait_for<0>(d);
}

// A thread of a block that has a half of k: sends one half of its sums to the other
// block, and returns the other half with the sums added that it receives. half 0 keeps
// the first panel.
template <typename F>
__device__ __forceinline__ void exchange(float (&kept)[kSent], const float (&d)[kSums],
                                         typename F::Shared& shared, int half,
                                         int other) {
  int group = threadIdx.x / kWarpGroup, warp = threadIdx.x / 32,
      lane = threadIdx.x % 32;
  // Where tiles of a were that this warp group alone has read, two warps in each of two
  // stages.
  auto& sent = reinterpret_cast<typename F::Sums&>(
      shared.stages[warp % 4 / 2].a[group * 64 + warp % 2 * 32]);
#pragma unroll
  for (int i = 0; i < kSent / 4; ++i) {
    const float *low = &d[4 * i], *high = &d[kSent + 4 * i];
    sent[i][lane] = half ? make_float4(low[0], low[1], low[2], low[3])
                         : make_float4(high[0], high[1], high[2], high[3]);
  }
  hopper::fence_before_store();
  __syncwarp();
  if (lane == 0)
    hopper::send_bytes(other, shared.received[warp], sent, sizeof(sent),
                       shared.sums_full);
  hopper::wait(shared.sums_full, 0);
  if (threadIdx.x == 0) hopper::arrive_at(other, shared.sums_empty);
#pragma unroll
  for (int i = 0; i < kSent / 4; ++i) {
    float4 four = shared.received[warp][i][lane];
    const float more[] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int j = 0; j < 4; ++j)
      kept[4 * i + j] = (half ? d[kSent + 4 * i + j] : d[4 * i + j]) + more[j];
  }
}

// a: m x k, b: k x n, c: m x n, all row-major. steps: how many times kK it takes to
// cover k, at least `splits`.
template <typename F>
__global__ void __cluster_dims__(F::blocks, 1, 1) __launch_bounds__(F::threads, 1)
    matmul_split_kernel(const __grid_constant__ TileMap a,
                        const __grid_constant__ TileMap b, bfloat16* c, int m, int n,
                        int cluster_rows, int cluster_columns, int steps) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<typename F::Shared>(memory);
  int group = threadIdx.x / kWarpGroup;  // the last one produces
  bool producer = threadIdx.x == F::groups * kWarpGroup;
  if (producer) {
    hopper::prefetch(a);
    hopper::prefetch(b);
    shared.init(F::groups * (F::rows + F::columns - 1));
    hopper::init(shared.sums_full, 1);
    hopper::init(shared.sums_empty, 1);
    hopper::fence_init();
    if (F::splits > 1)
      hopper::arrive_and_expect(shared.sums_full, sizeof(shared.received));
  }
  // No thread arrives at a barrier before it is initialised, in any block.
  hopper::cluster_sync();
  int rank = hopper::cluster_rank();
  hopper::TileIndex cluster(blockIdx.x / F::blocks, cluster_rows, cluster_columns,
                            kClusterRows);
  WorkTile work = work_tile<F>(rank, cluster, steps);
  if (group == F::groups) {
    if (producer) produce<F>(shared, a, b, work);
    return;
  }
  float d[kSums];
  multiply<F>(d, shared, group, work);
  if constexpr (F::splits == 1) {
    hopper::write(d, c, work.row + group * 64, work.column, m, n);
  } else {
    float kept[kSent];
    int half = rank / F::tiles;
    exchange<F>(kept, d, shared, half, rank ^ F::tiles);
    hopper::write(kept, c, work.row + group * 64, work.column + half * kPanel, m, n);
    // shared memory must outlive what is sent from it.
    hopper::wait(shared.sums_empty, 0);
  }
}

// -------------------------------------------------------------------------------------
// Launcher

template <typename F>
int64_t clusters(const ladder::MatmulSizes& size) {
  return ceil_div(size.m, F::rows * F::m) * ceil_div(size.n, F::columns * kN);
}

// Whether all clusters run at once.
template <typename F>
bool fits(const ladder::MatmulSizes& size) {
  int resident = ladder::once_per_device([] {
    constexpr int bytes = hopper::kSharedBytes<typename F::Shared>;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = F::blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {F::blocks, F::threads, bytes, nullptr, &cluster, 1};
    int count = 0;
    STD_CUDA_CHECK(cudaFuncSetAttribute(
        matmul_split_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    STD_CUDA_CHECK(
        cudaOccupancyMaxActiveClusters(&count, matmul_split_kernel<F>, &config));
    return count;
  });
  return clusters<F>(size) <= resident && ceil_div(size.k, kK) >= F::splits;
}

template <typename F>
Tensor run_config(const Tensor& a, const Tensor& b) {
  auto launch = [](const hopper::Operands& o, int, cudaStream_t stream) {
    int m = o.size.m, n = o.size.n;
    matmul_split_kernel<F><<<clusters<F>(o.size) * F::blocks, F::threads,
                             hopper::kSharedBytes<typename F::Shared>, stream>>>(
        o.a, o.b, o.c, m, n, ceil_div(m, F::rows * F::m), ceil_div(n, F::columns * kN),
        ceil_div(o.size.k, kK));
  };
  return hopper::matmul<typename F::Shared>(a, b, F::m, matmul_split_kernel<F>, launch,
                                            F::share_a, F::box_b);
}

template <typename F, typename... More>
Tensor first_that_fits(const Tensor& a, const Tensor& b,
                       const ladder::MatmulSizes& size) {
  if (fits<F>(size)) return run_config<F>(a, b);
  if constexpr (sizeof...(More) > 0) {
    return first_that_fits<More...>(a, b, size);
  } else {
    return run<StoreMode::overlapped>(a, b);
  }
}

}  // namespace small

Tensor matmul_split(const Tensor& a, const Tensor& b) {
  using small::Config;
  auto size = ladder::check_matmul<ladder::BFloat16>(a, b, ladder::Layout::row_major);
  auto guard = ladder::on_device_of(a);
  return small::first_that_fits<Config<1, 2, 1, 2>, Config<1, 4, 2, 1>,
                                Config<1, 2, 2, 1>, Config<1, 2, 1, 1>,
                                Config<2, 2, 1, 1>>(a, b, size);
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_split(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_split", TORCH_BOX(&matmul_split));
}
