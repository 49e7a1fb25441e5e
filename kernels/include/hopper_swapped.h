// hopper_swapped.h: matmul_cluster's product with a and b swapped ("swap AB"), for
// tiles of any multiple of 8 rows of c.
//
// wgmma multiplies 64 rows of one factor with 8 to 256 columns of the other. As
// matmul_cluster calls it, a has the 64 rows: 300 rows of c take 384, or 320 in tiles
// of 64 rows, for which b is read five times. Transposed, c^T = b^T @ a^T, the 64 are
// columns of b, of which there are many, and the rows of a the multiple of 8: two tiles
// of 152 rows cover 300 with 304.
//
//   stage     as matmul_cluster's: wgmma reads either factor either way
//   sums      a thread has those of one column of c, in pairs of rows. movmatrix
//             transposes each 8 x 8 of them before they are written
//   clusters  of four blocks too, all with the same rows of a. Where rows of a matrix
//             do not begin at whole lines of 128 bytes, each 128 bytes of a tile are
//             parts of two lines, and the L2 cache has twice the work for what is
//             loaded twice
//
// What limits it: the results are written after the last product, with nothing to hide
// behind but the loads of the next tile.
#pragma once

#include <algorithm>
#include <climits>

#include "hopper_epilogue.h"
#include "hopper_matmul.h"
#include "hopper_parts.h"
#include "hopper_wgmma.h"

namespace hopper::swapped {

using ladder::ceil_div, ladder::Tensor;

struct Output {
  bfloat16* data;
  int rows, columns;
};

// A block computes tiles of m x n elements of c: each of its consumers has 64 of the
// columns, or 128. The blocks of a cluster lie one below the other and share the tile
// of b, or beside each other and share that of a. An SM runs `per_sm` blocks.
template <int m_, int n_, int down_, int across_, int per_sm_ = 1, bool e4m3_ = false>
struct Config {
  static constexpr bool e4m3 = e4m3_;  // factors of 8 bits (hopper_fp8.h)
  static constexpr int m = m_, n = n_, down = down_, across = across_, per_sm = per_sm_;
  static constexpr int cluster = down * across, panels = n / kPanel;
  static constexpr int consumers = std::min(panels, 2), products = panels / consumers;
  static constexpr int threads = (1 + consumers) * kWarpGroup;
  static constexpr int rows = down * m, columns = across * n;  // of c, for a cluster
  // Lines of a and of b, 64 elements each, that a block loads for the cluster, and
  // those of b in one request.
  static constexpr int share_a = m / across, share_b = panels * kK / down,
                       box_b = std::min(share_b, kK);
  static_assert(down == 1 || across == 1, "a stage is for all blocks of the cluster");
  static_assert(m % (8 * across) == 0 && box_b % 8 == 0,
                "shares begin where the swizzle's pattern begins");
  static_assert(m * products <= 384, "a consumer has registers for its sums");
  using Stage = StageOf<panels, m>;
  static constexpr int stages = std::min<int>(8, 222 * 1024 / per_sm / sizeof(Stage));
  using PipelineState = PipelineStateOf<stages>;
  using Shared = RingOf<Stage, stages>;
};

// The tile scheduler of a persistent block, as matmul_cluster's.
template <typename F>
struct Scheduler {
  int rank, first, stride;
  int rows, columns, steps;  // of c, in clusters' tiles; along k, in steps of kK
  Parts parts;
  __device__ int end() const { return parts.items(rows * columns); }
  __device__ Work work(int number) const {
    Part part = parts.part(number, steps);
    TileIndex index(part.tile, rows, columns, kGroup);
    int down = rank % F::down * F::m, right = rank / F::down * F::n;
    return {index.row * F::rows + down, index.column * F::columns + right, part.first,
            part.end,
            parts.sums_of(part, F::rows * F::columns, down * F::columns + right)};
  }
};

// -------------------------------------------------------------------------------------
// Kernel

// For this block, or for all `blocks` of the cluster.
template <int blocks>
__device__ void load(void* to, const TileMap& map, Barrier& full, int row, int column) {
  if constexpr (blocks > 1) {
    load_tile_for((1 << blocks) - 1, to, map, full, row, column);
  } else {
    load_tile(to, map, full, row, column);
  }
}

// One thread. As matmul_cluster's, with shares of a's tile too.
template <typename F>
__device__ void produce(typename F::Shared& shared, const TileMap& a, const TileMap& b,
                        const Scheduler<F>& scheduler, int m, int n) {
  int rank = scheduler.rank, filled = 0;  // stages
  int first_a = rank / F::down * F::share_a, first_b = rank % F::down * F::share_b;
  typename F::PipelineState pipe;
  ladder::wait_for_kernel_before();
  for (int number = scheduler.first; number < scheduler.end();
       number += scheduler.stride) {
    Work work = scheduler.work(number);
    for (int step = work.first; step < work.end; ++step, pipe.advance(), ++filled) {
      auto& stage = shared.stages[pipe.stage];
      Barrier& full = shared.full[pipe.stage];
      int bottom = filled < F::stages ? INT_MAX : m,
          right = filled < F::stages ? INT_MAX : n;
      int panels = pieces_inside(F::panels, kPanel, work.column, right);
      bool has_a = work.row < bottom;
      wait(shared.empty[pipe.stage], pipe.parity ^ 1);
      arrive_and_expect(full, has_a * sizeof(stage.a) + panels * sizeof(stage.b[0]));
      if (has_a)
        load<F::across>(stage.a[first_a], a, full, work.row + first_a, step * kK);
#pragma unroll
      for (int i = 0; i < F::share_b; i += F::box_b) {
        int p = (first_b + i) / kK, line = (first_b + i) % kK;
        int column = work.column + p * kPanel;
        if (column >= right) continue;
        if (F::e4m3) {  // b lies column by column
          load<F::down>(stage.b[p][line], b, full, column + line, step * kK);
        } else {
          load<F::down>(stage.b[p][line], b, full, step * kK + line, column);
        }
      }
    }
  }
}

// The thread's pair of the transposed 8 x 8 matrix. Thread t of the warp has elements
// of row t / 4 and of columns t % 4 * 2 and the next, before and after.
__device__ __forceinline__ uint32_t transposed(uint32_t pair) {
  uint32_t across = 0;
  HOPPER_ASM(
      "movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(across) : "r"(pair));
  return across;
}

// d: this thread's part of m rows of c and of 64 columns, which begin at `column`.
template <int m, typename Epilogue>
__device__ void write(const float (&d)[m / 2], const Output& c, int row, int column,
                      const Epilogue& epilogue) {
  int t = threadIdx.x % kWarpGroup;
  row += t % 32 / 4;
  column += t / 32 * 16;
  auto of_left = epilogue.of_column(column + t % 32 / 4),
       of_right = epilogue.of_column(column + 8 + t % 32 / 4);
  column += ladder::first_of_four();
#pragma unroll
  for (int j = 0; j < m / 8; ++j) {  // 8 rows each
    const float* sums = &d[4 * j];
    uint32_t left = transposed(word_of(epilogue({sums[0], sums[1]}, of_left)));
    uint32_t right = transposed(word_of(epilogue({sums[2], sums[3]}, of_right)));
    uint2 four = ladder::four_neighbours(left, right);
    if (row + 8 * j < c.rows && column < c.columns)
      *reinterpret_cast<uint2*>(&c.data[int64_t(row + 8 * j) * c.columns + column]) =
          four;
  }
}

// The same in float32, for sums of a part of k: to rows of `columns` elements that all
// exist.
template <int m>
__device__ void write_sums(const float (&d)[m / 2], float* sums, int column,
                           int columns) {
  int t = threadIdx.x % kWarpGroup;
  sums += t % 4 * 2 * columns + column + t / 32 * 16 + t % 32 / 4;
#pragma unroll
  for (int j = 0; j < m / 2; ++j)
    sums[(j / 4 * 8 + j % 2) * columns + j / 2 % 2 * 8] = d[j];
}

// A warp group. Multiplies the tiles that the producers load. `consumer`, 0 or 1,
// selects its half of the tile's columns.
template <typename F, typename Epilogue>
__device__ void consume(typename F::Shared& shared, const Output& c, int consumer,
                        const Scheduler<F>& scheduler, const Epilogue& epilogue) {
  typename F::PipelineState pipe;
  int thread = threadIdx.x % kWarpGroup, first = consumer * F::products;
  // One thread for each block of the cluster arrives there: the stage is empty.
  auto release = [&](int stage) {
    if (thread < F::cluster) arrive_at(thread, shared.empty[stage]);
  };
  float d[F::products][F::m / 2];
  for (int number = scheduler.first; number < scheduler.end();
       number += scheduler.stride) {
    Work work = scheduler.work(number);
    int before = -1;  // the stage whose products may still be running
    for (int step = work.first; step < work.end; ++step, pipe.advance()) {
      auto& stage = shared.stages[pipe.stage];
      wait(shared.full[pipe.stage], pipe.parity);
      uint64_t a = descriptor(stage.a, 16);
      uint64_t b = descriptor(stage.b[first], F::e4m3 ? 16 : sizeof(stage.b[0]));
      constexpr int next_k = F::e4m3 ? 32 : 16 * kRowBytes;
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kK / 16; ++k) {
#pragma unroll
        for (int p = 0; p < F::products; ++p)
          wgmma<F::m, true, false, F::e4m3>(
              d[p], b + (p * sizeof(stage.b[0]) + k * next_k) / 16, a + k * (32 >> 4),
              step > work.first || k > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();
      if (before >= 0) release(before);
      before = pipe.stage;
    }
    for (auto& sums : d) wgmma_wait_for<0>(sums);
    release(before);
#pragma unroll
    for (int p = 0; p < F::products; ++p) {
      int column = (first + p) * kPanel;
      if (work.sums) {
        write_sums<F::m>(d[p], work.sums, column, F::columns);
      } else {
        write<F::m>(d[p], c, work.row, work.column + column, epilogue);
      }
    }
  }
}

// a: m x k, b: k x n, c: m x n, all row-major. steps: how many times kK it takes to
// cover k, at least 1.
template <typename F, typename Epilogue>
__global__ void __cluster_dims__(F::cluster, 1, 1)
    __launch_bounds__(F::threads, F::per_sm)
        matmul_swapped_kernel(const __grid_constant__ TileMap a,
                              const __grid_constant__ TileMap b,
                              const __grid_constant__ Output c, int rows, int columns,
                              int steps, Parts parts, Epilogue epilogue) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = aligned<typename F::Shared>(memory);
  if (threadIdx.x == 0) {
    prefetch(a);
    prefetch(b);
    shared.init(F::cluster * F::consumers);
    fence_init();
  }
  ladder::let_next_kernel_begin();
  // No thread arrives at a barrier before it is initialised, in any block.
  cluster_sync();
  Scheduler<F> scheduler{cluster_rank(),
                         int(blockIdx.x) / F::cluster,
                         int(gridDim.x) / F::cluster,
                         rows,
                         columns,
                         steps,
                         parts};
  auto producer = [&] { produce<F>(shared, a, b, scheduler, c.rows, c.columns); };
  auto consumer = [&](int i) { consume<F>(shared, c, i, scheduler, epilogue); };
  if constexpr (F::threads == kThreads && F::per_sm == 1) {
    specialize_warps(producer, consumer);
  } else if (threadIdx.x >= kWarpGroup) {
    consumer(threadIdx.x / kWarpGroup - 1);
  } else if (threadIdx.x < 32 && elected()) {
    producer();
  }
  // No block exits while another may still write into it or arrive at its barriers.
  if constexpr (F::cluster > 1) cluster_sync();
}

// -------------------------------------------------------------------------------------
// Launcher

// How many clusters run at once.
template <typename F, typename Epilogue>
int resident_clusters() {
  return ladder::once_per_device([] {
    return resident_clusters(matmul_swapped_kernel<F, Epilogue>, F::cluster, F::threads,
                             kSharedBytes<typename F::Shared>);
  });
}

// whole, count: as in Parts.
template <typename F, typename Epilogue>
Tensor run(const Tensor& a, const Tensor& b, int64_t whole, int count,
           Epilogue epilogue) {
  auto launch = [&](const Operands& o, int, cudaStream_t stream) {
    int m = o.size.m, n = o.size.n;
    Tiles tiles = {F::rows, F::columns, int(ceil_div(m, F::rows)),
                   int(ceil_div(n, F::columns)), kGroup};
    SumsOfParts parts(a, tiles, whole, count);
    int64_t clusters =
        std::min<int64_t>(parts.items(), resident_clusters<F, Epilogue>());
    ladder::EarlyLaunch launch(clusters * F::cluster, F::threads,
                               kSharedBytes<typename F::Shared>, stream);
    STD_CUDA_CHECK(cudaLaunchKernelEx(
        &launch.config, matmul_swapped_kernel<F, Epilogue>, o.a, o.b, Output{o.c, m, n},
        tiles.rows, tiles.columns, int(ceil_div(o.size.k, kK)), parts.parts, epilogue));
    parts.add_up(o.c, m, n, epilogue, stream);
  };
  return matmul<typename F::Shared, F::e4m3>(
      a, b, F::rows, matmul_swapped_kernel<F, Epilogue>, launch, F::share_a, F::box_b);
}

}  // namespace hopper::swapped
