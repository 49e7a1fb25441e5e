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
// each multiplies one half of k. Then each sends the other half of its columns,
// straight into the other's shared memory, and adds up and writes its own. Every
// element is the sum of the same two halves in each run, so results repeat bit for bit.
// Further parts of k go to other clusters, and through global memory (hopper_parts.h).
//
// A block asks for no rows of a that are not there. TMA takes as long for zeros as for
// elements: 16 rows of a, in tiles of 64, took twice as long.
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
// On an H200 it has 99% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#define LADDER_NO_OPERATORS
#include "../matmul/12_cluster.cu"

#include <climits>

#include "hopper_bulk.h"
#include "hopper_wgmma.h"
#include "row.h"

namespace small {

// Rows of a group: clusters that run together share rows of a and columns of b.
constexpr int kClusterRows = 4;
constexpr int kChunk = 16;  // sums of a thread that are sent in one piece

// A block multiplies with `groups` warp groups, 64 rows each, and n columns. A cluster
// has rows x columns tiles, and `splits` blocks for each of them.
template <int groups_, int rows_, int columns_, int splits_, int n_ = 128>
struct Config {
  static constexpr int groups = groups_, rows = rows_, columns = columns_,
                       splits = splits_, n = n_;
  static constexpr int m = groups * 64, tiles = rows * columns, blocks = tiles * splits;
  static constexpr int panels = n / kPanel;
  static constexpr int lines = panels * kK;  // of a tile of b, 128 bytes each
  static constexpr int sums = n / 2, kept = sums / splits;  // of a thread
  static_assert(splits == 1 || kept % kChunk == 0, "chunks have one receiver");
  static constexpr int threads = (groups + 1) * kWarpGroup;
  // Lines that a block loads.
  static constexpr int share_a = m / columns, share_b = lines / rows;
  static constexpr int box_b = std::min(share_b, kK);  // lines in one request

  struct Stage {
    bfloat16 a[m][kK];          // row-major
    bfloat16 b[lines][kPanel];  // panel by panel, each row-major
  };
  static_assert(share_a % 8 == 0 && box_b % 8 == 0,
                "shares begin where the swizzle's pattern begins");
  static constexpr int stages = groups == 1 || n == 64 ? 8 : 6;
  using PipelineState = hopper::PipelineStateOf<stages>;

  // Sums that a warp sends, lane by lane: no bank conflicts.
  using Chunk = float4[kChunk / 4][32];
  struct Shared : hopper::RingOf<Stage, stages> {
    // From the block that has this part of k.
    alignas(128) Chunk received[splits][groups * 4][splits > 1 ? kept / kChunk : 1];
    // The other blocks' sums have arrived; they have received this block's.
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
__device__ WorkTile work_tile(int rank, hopper::TileIndex cluster, int begin,
                              int steps) {
  int row = rank % F::rows, column = rank / F::rows % F::columns,
      part = rank / F::tiles, first = part * F::tiles;
  WorkTile work;
  work.row = (cluster.row * F::rows + row) * F::m;
  work.column = (cluster.column * F::columns + column) * F::n;
  work.first = begin + part * steps / F::splits;
  work.end = begin + (part + 1) * steps / F::splits;
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
                        const WorkTile& work, int rows_of_a, int n) {
  typename F::PipelineState pipe;
  ladder::wait_for_kernel_before();
  for (int step = work.first; step < work.end; ++step, pipe.advance()) {
    auto& stage = shared.stages[pipe.stage];
    Barrier& full = shared.full[pipe.stage];
    // As in matmul_cluster, panels outside of b are requested once for each stage.
    int right = step - work.first < F::stages ? INT_MAX : n;
    int panels = hopper::pieces_inside(F::panels, kPanel, work.column, right);
    // At first there is no phase to wait for.
    hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);
    hopper::arrive_and_expect(
        full, (rows_of_a * F::columns + panels * kK) * hopper::kRowBytes);
    if constexpr (F::columns == 1) {
      hopper::load_tile(stage.a, a, full, work.row, step * kK);
    } else {
      hopper::load_tile_for(work.blocks_of_a, stage.a[work.share_a], a, full,
                            work.row + work.share_a, step * kK);
    }
    for (int line = work.share_b; line < work.share_b + F::share_b; line += F::box_b) {
      int column = work.column + line / kK * kPanel;
      if (column < right)
        hopper::load_tile_for(work.blocks_of_b, stage.b[line], b, full,
                              step * kK + line % kK, column);
    }
  }
}

// A warp group. d = the products that the producers load, of 64 of the tile's rows,
// selected by `group`.
template <typename F>
__device__ __forceinline__ void multiply(float (&d)[F::sums],
                                         typename F::Shared& shared, int group,
                                         const WorkTile& work) {
  typename F::PipelineState pipe;
  // before: the stage whose products may still be running.
  int before = -1, thread = threadIdx.x % kWarpGroup;
  bool arrives =
      thread < F::blocks && ((work.blocks_of_a | work.blocks_of_b) >> thread & 1);
  for (int step = work.first; step < work.end; ++step, pipe.advance()) {
    auto& stage = shared.stages[pipe.stage];
    hopper::wait(shared.full[pipe.stage], pipe.parity);
    uint64_t a = hopper::descriptor(stage.a[group * 64], 16);
    uint64_t b = hopper::descriptor(stage.b, sizeof(stage.b) / F::panels);
    hopper::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK / 16; ++k)
      hopper::wgmma_shared<F::n, false, true>(d, a + k * (32 >> 4),
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

// A thread of a block that has part `part` of k: sends to each other block of the tile
// the sums of that block's columns, and returns the sums of its own, added up in the
// order of the parts. rank: of the block with part 0.
template <typename F>
__device__ __forceinline__ void exchange(float (&kept)[F::kept],
                                         const float (&d)[F::sums],
                                         typename F::Shared& shared, int part,
                                         int rank) {
  constexpr int chunks = F::kept / kChunk;
  int group = threadIdx.x / kWarpGroup, warp = threadIdx.x / 32,
      lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < F::sums / kChunk; ++i) {
    // Where rows of a were that this warp alone has read.
    auto& sent = reinterpret_cast<typename F::Chunk&>(
        shared.stages[i].a[group * 64 + warp % 4 * 16]);
    static_assert(sizeof(sent) == sizeof(shared.stages[0].a[0]) * 16);
#pragma unroll
    for (int j = 0; j < kChunk / 4; ++j) {
      const float* four = &d[kChunk * i + 4 * j];
      sent[j][lane] = make_float4(four[0], four[1], four[2], four[3]);
    }
  }
  hopper::fence_before_store();
  __syncwarp();
  if (lane == 0) {
    for (int i = 0; i < F::sums / kChunk; ++i) {
      if (i / chunks == part) continue;
      hopper::send_bytes(rank + i / chunks * F::tiles,
                         shared.received[part][warp][i % chunks],
                         shared.stages[i].a[group * 64 + warp % 4 * 16],
                         sizeof(typename F::Chunk), shared.sums_full);
    }
  }
  hopper::wait(shared.sums_full, 0);
  int other = threadIdx.x;
  if (other < F::splits && other != part)
    hopper::arrive_at(rank + other * F::tiles, shared.sums_empty);
#pragma unroll
  for (int i = 0; i < F::kept / 4; ++i) {
    int chunk = i / (kChunk / 4), j = i % (kChunk / 4);
    auto& own = reinterpret_cast<typename F::Chunk&>(
        shared.stages[part * chunks + chunk].a[group * 64 + warp % 4 * 16]);
#pragma unroll
    for (int from = 0; from < F::splits; ++from) {
      float4 four = (from == part ? own : shared.received[from][warp][chunk])[j][lane];
      const float more[] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int l = 0; l < 4; ++l)
        kept[4 * i + l] = from == 0 ? more[l] : kept[4 * i + l] + more[l];
    }
  }
}

// a: m x k, b: k x n, c: m x n, all row-major. steps: how many times kK it takes to
// cover k, at least `splits` for each part.
template <typename F, typename Epilogue>
__global__ void __cluster_dims__(F::blocks, 1, 1) __launch_bounds__(F::threads, 1)
    matmul_split_kernel(const __grid_constant__ TileMap a,
                        const __grid_constant__ TileMap b, bfloat16* c, int m, int n,
                        int cluster_rows, int cluster_columns, int steps,
                        hopper::Parts parts, int rows_of_a, Epilogue epilogue) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<typename F::Shared>(memory);
  int group = threadIdx.x / kWarpGroup;  // the last one produces
  bool producer = threadIdx.x == F::groups * kWarpGroup;
  if (producer) {
    hopper::prefetch(a);
    hopper::prefetch(b);
    shared.init(F::groups * (F::rows + F::columns - 1));
    hopper::init(shared.sums_full, 1);
    hopper::init(shared.sums_empty, F::splits > 1 ? F::splits - 1 : 1);
    hopper::fence_init();
    if (F::splits > 1)
      hopper::arrive_and_expect(shared.sums_full,
                                sizeof(shared.received[0]) * (F::splits - 1));
  }
  ladder::let_next_kernel_begin();
  // The products read whole tiles of a; only their first rows will be loaded.
  int zeros = (F::m - rows_of_a * F::columns) * hopper::kRowBytes / sizeof(uint4);
  for (int i = threadIdx.x; i < zeros * F::stages; i += F::threads)
    reinterpret_cast<uint4*>(shared.stages[i / zeros].a[rows_of_a])[i % zeros] = {};
  if (zeros > 0) hopper::fence_before_store();
  // No thread arrives at a barrier before it is initialised, in any block.
  hopper::cluster_sync();
  int rank = hopper::cluster_rank();
  hopper::Part part = parts.part(blockIdx.x / F::blocks, steps);
  hopper::TileIndex cluster(part.tile, cluster_rows, cluster_columns, kClusterRows);
  WorkTile work = work_tile<F>(rank, cluster, part.first, part.end - part.first);
  if (group == F::groups) {
    if (threadIdx.x < F::groups * kWarpGroup + 32 && hopper::elected())
      produce<F>(shared, a, b, work, rows_of_a, n);
    return;
  }
  // Of the parts' sums, the cluster's: F::rows * F::m x F::columns * F::n.
  constexpr int width = F::columns * F::n;
  float* sums = parts.sums_of(part, F::rows * F::m * width, 0);
  int in_row = work.row - cluster.row * F::rows * F::m + group * 64,
      in_column = work.column - cluster.column * width;
  auto write = [&](const auto& d, int column) {
    if (sums) {
      hopper::write_sums(d, sums, in_row, in_column + column, width);
    } else {
      hopper::write(d, c, work.row + group * 64, work.column + column, m, n, epilogue);
    }
  };
  float d[F::sums];
  multiply<F>(d, shared, group, work);
  if constexpr (F::splits == 1) {
    write(d, 0);
  } else {
    float kept[F::kept];
    int split = rank / F::tiles;
    exchange<F>(kept, d, shared, split, rank % F::tiles);
    write(kept, split * F::n / F::splits);
    // shared memory must outlive what is sent from it.
    hopper::wait(shared.sums_empty, 0);
  }
}

// -------------------------------------------------------------------------------------
// Launcher

template <typename F>
hopper::Tiles tiles_of(const ladder::MatmulSizes& size) {
  constexpr int m = F::rows * F::m, n = F::columns * F::n;
  return {m, n, int(ceil_div(size.m, m)), int(ceil_div(size.n, n)), kClusterRows};
}

// How many clusters run at once.
template <typename F, typename Epilogue = Identity>
int resident_clusters() {
  return ladder::once_per_device([] {
    return hopper::resident_clusters(matmul_split_kernel<F, Epilogue>, F::blocks,
                                     F::threads,
                                     hopper::kSharedBytes<typename F::Shared>);
  });
}

// Whether all clusters run at once.
template <typename F>
bool fits(const ladder::MatmulSizes& size) {
  hopper::Tiles tiles = tiles_of<F>(size);
  return int64_t(tiles.rows) * tiles.columns <= resident_clusters<F>() &&
         ceil_div(size.k, kK) >= F::splits;
}

// count: parts of k for other clusters. Each has at least F::splits steps.
template <typename F, typename Epilogue = Identity>
Tensor run_config(const Tensor& a, const Tensor& b, int count = 1,
                  Epilogue epilogue = {}) {
  // A block asks for no rows of a that are not there: zeros take as long as elements.
  int rows_of_a = F::columns > 1
                      ? F::share_a
                      : int(std::min<int64_t>(F::m, ceil_div(a.size(0), 8) * 8));
  auto launch = [&](const hopper::Operands& o, int, cudaStream_t stream) {
    int m = o.size.m, n = o.size.n;
    hopper::Tiles tiles = tiles_of<F>(o.size);
    hopper::SumsOfParts parts(a, tiles, 0, count);
    ladder::EarlyLaunch launch(parts.items() * F::blocks, F::threads,
                               hopper::kSharedBytes<typename F::Shared>, stream);
    STD_CUDA_CHECK(cudaLaunchKernelEx(&launch.config, matmul_split_kernel<F, Epilogue>,
                                      o.a, o.b, o.c, m, n, tiles.rows, tiles.columns,
                                      ceil_div(o.size.k, kK), parts.parts, rows_of_a,
                                      epilogue));
    parts.add_up(o.c, m, n, epilogue, stream);
  };
  return hopper::matmul<typename F::Shared>(
      a, b, F::m, matmul_split_kernel<F, Epilogue>, launch, rows_of_a, F::box_b);
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

#ifndef LADDER_NO_SPLIT_OPERATOR

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
#endif
