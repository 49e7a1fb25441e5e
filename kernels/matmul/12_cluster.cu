// 12_cluster.cu: matmul_wgmma with two blocks in a cluster, which share a tile of b,
// and with TMA for c too. Three rungs.
//
// What each adds to the one before, the first to matmul_wgmma, whose warp roles, ring
// and tile scheduler they keep:
//
//   matmul_cluster_only: a cluster. The tiles of c of its two blocks lie one below the
//   other, so both blocks need the same tiles of b. Each block loads half of a tile,
//   and the load delivers it to both. For each 64 along k a block requests 16 KB of a
//   and 16 KB of b from the L2 cache, instead of 16 and 32: 128 FLOPs per byte instead
//   of 85. Either block writes into both, so a stage is empty when the consumers of
//   both blocks have finished with it: consumers arrive at the other block's barrier
//   too.
//
//   matmul_cluster_stored: an epilogue through shared memory. A warp writes 16 x 64 of
//   them in TMA's layout, and one of its lanes requests the store. Whole lines are
//   written instead of scattered pieces of 16 bytes, and no thread computes an address
//   in c. Each warp has its own small ring of kBuffers such panels, and no warp waits
//   for another.
//
//   matmul_cluster: an overlapped epilogue: a tile is stored while the next one is
//   multiplied. The sums, rounded to bfloat16, wait in 64 registers beside the 128 of
//   the next tile; a panel goes out each time that one of the next tile's first
//   products has begun. The tensor cores do not stop between tiles.
//
// The rungs are one kernel, whose StoreMode differs: producer, main loop and launcher
// are the same. In files of their own they would repeat these, or a header would hold
// everything but the mode.
//
// With an epilogue: matmul_cluster_gelu is gelu(a @ b + bias) in one kernel, which
// saves writing and reading a @ b. For training, matmul_cluster_gelu_saving returns a @
// b too, since backward needs it: 2mn more bytes to write, instead of 2mnk FLOPs to
// compute it again.
//
// If the last cluster has rows for its first block only, the second computes nothing:
// TMA loads zeros for it and stores nothing.
//
// What limits it: power. The tensor cores are busy nine tenths of the time, and the GPU
// lowers its clock to feed them.
//
// On an H200 it has 100% of cuBLAS's speed at 4096 x 4096 x 4096, bfloat16.
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <torch/csrc/stable/library.h>

#include <climits>
#include <tuple>

#include "hopper_cluster.h"

using hopper::Barrier, hopper::BiasGelu, hopper::bfloat16, hopper::Identity,
    hopper::TileMap;
using hopper::kBuffers, hopper::kConsumers, hopper::kThreads, hopper::kWarpGroup,
    hopper::kWarpRows;
using hopper::kGroup, hopper::kK, hopper::kM, hopper::kPanel, hopper::Work;
using hopper::Product, hopper::TileConfig, hopper::TileScheduler;
using ladder::ceil_div, ladder::Tensor;

enum class StoreMode { direct, tma, overlapped };  // the epilogues of the three rungs
constexpr int kCluster = 2;                        // blocks of the three rungs
using Pair = TileConfig<hopper::kN, kCluster>;

// -------------------------------------------------------------------------------------
// Kernel

// One thread. Requests the tiles for every k as soon as a stage is empty in all blocks
// of the cluster: a's tile for this block, and this block's share of b's panels for
// all. TMA takes as long for zeros outside of a and b as for elements, so these are
// requested once for each stage; later, what the stage held before will do, since
// results there are not stored. m, n: of c.
template <typename F>
__device__ void produce(typename F::Shared& shared, const TileMap& a, const TileMap& b,
                        const TileScheduler<F>& scheduler, int m, int n) {
  constexpr uint16_t cluster_mask = (1 << F::cluster) - 1;
  int share = scheduler.rank * F::lines, filled = 0;  // stages
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
      int panels = hopper::pieces_inside(F::panels, kPanel, work.column, right);
      // At first there is no phase to wait for.
      hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);
      hopper::arrive_and_expect(
          full, (work.row < bottom) * sizeof(stage.a) + panels * sizeof(stage.b[0]));
      if (work.row < bottom) hopper::load_tile(stage.a, a, full, work.row, step * kK);
#pragma unroll
      for (int i = 0; i < F::lines; i += F::box) {
        int p = (share + i) / kK, line = (share + i) % kK;
        int row = step * kK + line, column = work.column + p * kPanel;
        if (column >= right) continue;
        if (F::e4m3) row = column + line, column = step * kK;  // b lies by columns
        if (F::cluster == 1) {
          hopper::load_tile(stage.b[p][line], b, full, row, column);
        } else {
          hopper::load_tile_for(cluster_mask, stage.b[p][line], b, full, row, column);
        }
      }
    }
  }
}

// The first of this thread's two columns in each 8 of the panel's.
__device__ inline int column_of_eight(int j) { return 8 * j + threadIdx.x % 4 * 2; }

// A warp. Writes subtile `subtile` of panel `p`, 64 columns, of its 16 rows of c, which
// begin at `row`, to shared memory; after the last one TMA stores the panel in c.
// pairs: the thread's part of a tile, two neighbours each, in the order of
// wgmma_64x256x16. of_columns: what the epilogue needs.
template <int subtiles, int count, typename Epilogue, typename OfColumns>
__device__ void store_subtile(const __nv_bfloat162 (&pairs)[count], int p, int subtile,
                              bfloat16 (&panel)[kWarpRows][kPanel], const TileMap& c,
                              int row, int column, const Epilogue& epilogue,
                              const OfColumns* of_columns) {
  constexpr int eights = kPanel / 8 / subtiles;
  int lane = threadIdx.x % 32;
  // Where the first pair of the lane's upper row belongs. The lower row is 8 further,
  // where the pattern is the same.
  uint32_t first =
      hopper::swizzled(lane / 4 * hopper::kRowBytes + column_of_eight(0) * 2);
  if (subtile == 0) {
    // TMA has read the panel that was here.
    if (lane == 0) hopper::store_wait<kBuffers - 1>();
    __syncwarp();
  }
#pragma unroll
  for (int j = 0; j < eights; ++j) {
    int eight = subtile * eights + j;
    for (int i = 0; i < 2; ++i) {
      uint32_t at = (first ^ eight * 16) + 8 * i * hopper::kRowBytes;
      *reinterpret_cast<__nv_bfloat162*>(reinterpret_cast<char*>(panel) + at) =
          epilogue.stored(pairs[2 * (p * kPanel / 8 + eight) + i], of_columns[j]);
    }
  }
  if (subtile < subtiles - 1) return;
  hopper::fence_before_store();
  __syncwarp();
  if (lane == 0) {
    hopper::store_tile(c, panel, row, column + p * kPanel);
    hopper::store_commit();
  }
}

// A warp group. Multiplies the tiles that the producers load. `consumer`, 0 or 1,
// selects its 64 of the tile's rows. If overlapped, the previous tile waits, rounded,
// in registers: each time that one of the first products has begun, one subtile of a
// panel is stored.
template <typename F, StoreMode mode, typename Epilogue>
__device__ void consume(typename F::Shared& shared, const Product& c, int consumer,
                        const TileScheduler<F>& scheduler, const Epilogue& epilogue) {
  typename F::PipelineState pipe;
  int thread = threadIdx.x % kWarpGroup, warp = thread / 32;
  bool waits = false;       // whether a tile waits in `done`
  int row = 0, column = 0;  // of that tile
  int stored = 0;           // panels, of all tiles before
  int before = -1;          // the stage whose products may still be running
  float d[F::n / 2];
  __nv_bfloat162 done[F::n / 4];
  // Begins the products of a stage.
  auto multiply = [&](bool add) {
    auto& stage = shared.stages[pipe.stage];
    hopper::wait(shared.full[pipe.stage], pipe.parity);
    // The next 16 along k are 32 bytes further in a's swizzled rows, and 16 rows of 128
    // bytes further in b's panels.
    uint64_t a = hopper::descriptor(stage.a[consumer * 64], 16);
    uint64_t b = hopper::descriptor(stage.b, F::e4m3 ? 16 : sizeof(stage.b[0]));
    constexpr int next_k = F::e4m3 ? 32 : 16 * hopper::kRowBytes;
    hopper::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK / 16; ++k)
      hopper::wgmma<F::n, false, true, F::e4m3>(d, a + k * (32 >> 4),
                                                b + k * (next_k >> 4), add || k > 0);
    hopper::wgmma_commit();
  };
  // One thread per block of the cluster arrives at that block's barrier: the stage is
  // empty.
  auto release = [&](int stage) {
    if (thread < F::cluster) hopper::arrive_at(thread, shared.empty[stage]);
  };
  // Waits for the products of the previous stage, and goes on to the next.
  auto advance = [&] {
    hopper::wgmma_wait<1>();
    if (before >= 0) release(before);
    before = pipe.stage;
    pipe.advance();
  };
  // Multiplies the steps of a tile. Beside each of the first, a subtile of the tile
  // before is stored. A panel, of c or, alternately, of the sums and of c, has `number`
  // of them.
  constexpr int stores = Epilogue::kSaves ? 2 : 1;
  auto multiply_beside = [&](auto number, int steps) {
    constexpr int subtiles = decltype(number)::value, eights = kPanel / 8 / subtiles,
                  all_subtiles = F::panels * stores * subtiles;
    // Of two subtiles, one after the other.
    decltype(epilogue.of_columns(0)) of_columns[2][eights];
    auto load_for = [&](int i) {
      if (i >= all_subtiles) return;
#pragma unroll
      for (int j = 0; j < eights; ++j)
        of_columns[i % 2][j] =
            epilogue.of_columns(column + i / subtiles / stores * kPanel +
                                column_of_eight(i % subtiles * eights + j));
    };
    auto store_one = [&](int i) {
      int store = i / subtiles, p = store / stores;
      auto& panel =
          shared.staging[consumer * 4 + warp].panels[(stored + store) % kBuffers];
      if (store % stores < stores - 1) {
        store_subtile<subtiles>(done, p, i % subtiles, panel, c.sums, row, column,
                                Identity(), of_columns[i % 2]);
      } else {
        store_subtile<subtiles>(done, p, i % subtiles, panel, c.panels, row, column,
                                epilogue, of_columns[i % 2]);
      }
    };
    load_for(0);
#pragma unroll
    for (int i = 0; i < all_subtiles; ++i) {
      load_for(i + 1);
      if (i < steps) multiply(i > 0);
      if (waits) store_one(i);
      if (i < steps) advance();
    }
    for (int step = all_subtiles; step < steps; ++step) {
      multiply(true);
      advance();
    }
  };
  for (int number = scheduler.first;; number += scheduler.stride) {
    // No work any more: the tile before is written.
    bool last = number >= scheduler.end();
    Work work = {};
    if (!last) work = scheduler.work(number);
    int steps = work.end - work.first;
    // With few products to store beside, whole panels at a time: less code to fetch,
    // and more elements whose latencies overlap. With sums to save, registers lack.
    constexpr int few = Epilogue::kSaves ? Epilogue::kSubtiles : 1;
    if (few < Epilogue::kSubtiles && steps < F::panels * Epilogue::kSubtiles / 2) {
      multiply_beside(std::integral_constant<int, few>(), steps);
    } else {
      multiply_beside(std::integral_constant<int, Epilogue::kSubtiles>(), steps);
    }
    hopper::wgmma_wait_for<0>(d);
    if (last) break;
    release(before);
    before = -1;
    if constexpr (mode == StoreMode::direct) {
      hopper::write(d, c.data, work.row + consumer * 64, work.column, c.rows,
                    c.columns);
      continue;
    }
    if (waits) stored += F::panels * stores;
    waits = !work.sums;
    if (work.sums) {
      hopper::write_sums(d, work.sums, consumer * 64, 0, F::n);
      continue;
    }
#pragma unroll
    for (int i = 0; i < F::n / 4; ++i)
      done[i] =
          epilogue.waiting({d[2 * i], d[2 * i + 1]},
                           epilogue.of_columns(work.column + column_of_eight(i / 2)));
    row = work.row + consumer * 64 + warp * kWarpRows;
    column = work.column;
    if constexpr (mode == StoreMode::tma) {
      multiply_beside(std::integral_constant<int, 1>(), 0);
      stored += F::panels;
      waits = false;
    }
  }
  hopper::store_wait<0>();  // shared memory must outlive the stores
}

// a: m x k, b: k x n, c: m x n, all row-major. steps: how many times kK it takes to
// cover k, at least 1.
template <typename F, StoreMode mode, typename Epilogue>
__global__ void __cluster_dims__(F::cluster, 1, 1) __launch_bounds__(kThreads, 1)
    matmul_cluster_kernel(const __grid_constant__ TileMap a,
                          const __grid_constant__ TileMap b,
                          const __grid_constant__ Product c, int cluster_rows,
                          int columns, int steps, hopper::Parts parts,
                          Epilogue epilogue) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<typename F::Shared>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch(a);
    hopper::prefetch(b);
    shared.init(F::cluster * kConsumers);
    hopper::fence_init();
  }
  ladder::let_next_kernel_begin();
  // No thread arrives at a barrier before it is initialised, in either block.
  hopper::cluster_sync();
  TileScheduler<F> scheduler{hopper::cluster_rank(),
                             int(blockIdx.x) / F::cluster,
                             int(gridDim.x) / F::cluster,
                             cluster_rows,
                             columns,
                             steps,
                             parts};
  hopper::specialize_warps(
      [&] { produce<F>(shared, a, b, scheduler, c.rows, c.columns); },
      [&](int consumer) {
        consume<F, mode>(shared, c, consumer, scheduler, epilogue);
      });
  // No block exits while the other may still write into it or arrive at its barriers.
  hopper::cluster_sync();
}

// -------------------------------------------------------------------------------------
// Launcher

// whole, count: as in hopper::Parts; by default no sum has parts.
template <StoreMode mode, typename Epilogue = Identity, typename F = Pair>
Tensor run(const Tensor& a, const Tensor& b, Epilogue epilogue = {},
           bfloat16* sums = nullptr, int64_t whole = INT32_MAX, int count = 1) {
  auto launch = [&](const hopper::Operands& o, int sms, cudaStream_t stream) {
    int m = o.size.m, n = o.size.n;
    Product c = {o.c, m, n, hopper::tile_map(o.c, m, n, kWarpRows)};
    if (Epilogue::kSaves) c.sums = hopper::tile_map(sums, m, n, kWarpRows);
    hopper::Tiles tiles = {F::cluster * kM, F::n, int(ceil_div(m, F::cluster * kM)),
                           int(ceil_div(n, F::n)), kGroup};
    hopper::SumsOfParts parts(a, tiles, whole, count);
    int64_t clusters = std::min<int64_t>(parts.items(), std::max(1, sms / F::cluster));
    ladder::EarlyLaunch launch(clusters * F::cluster, kThreads,
                               hopper::kSharedBytes<typename F::Shared>, stream);
    STD_CUDA_CHECK(cudaLaunchKernelEx(
        &launch.config, matmul_cluster_kernel<F, mode, Epilogue>, o.a, o.b, c,
        tiles.rows, tiles.columns, ceil_div(o.size.k, kK), parts.parts, epilogue));
    parts.add_up(o.c, m, n, epilogue, stream);
  };
  return hopper::matmul<typename F::Shared, F::e4m3>(
      a, b, F::cluster * kM, matmul_cluster_kernel<F, mode, Epilogue>, launch, kM,
      F::box);
}

#ifndef LADDER_NO_OPERATORS

Tensor matmul_cluster_only(const Tensor& a, const Tensor& b) {
  return run<StoreMode::direct>(a, b);
}
Tensor matmul_cluster_stored(const Tensor& a, const Tensor& b) {
  return run<StoreMode::tma>(a, b);
}
Tensor matmul_cluster(const Tensor& a, const Tensor& b) {
  return run<StoreMode::overlapped>(a, b);
}

Tensor matmul_cluster_gelu(const Tensor& a, const Tensor& b, const Tensor& bias) {
  const bfloat16* data = hopper::check_bias(a, b, bias);
  return run<StoreMode::overlapped, BiasGelu<false>>(a, b, {data, int(bias.size(0))});
}

// gelu(a @ b + bias) and a @ b.
std::tuple<Tensor, Tensor> matmul_cluster_gelu_saving(const Tensor& a, const Tensor& b,
                                                      const Tensor& bias) {
  const bfloat16* data = hopper::check_bias(a, b, bias);
  ladder::check_matmul<ladder::BFloat16>(a, b, ladder::Layout::row_major);
  auto guard = ladder::on_device_of(a);
  Tensor sums = torch::stable::new_empty(a, {a.size(0), b.size(1)});
  auto* to = reinterpret_cast<bfloat16*>(sums.mutable_data_ptr<ladder::BFloat16>());
  return {
      run<StoreMode::overlapped, BiasGelu<true>>(a, b, {data, int(bias.size(0))}, to),
      sums};
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_cluster(a, b) and so on, for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_cluster_only(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_cluster_stored(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_cluster(Tensor a, Tensor b) -> Tensor");
  m.def("matmul_cluster_gelu(Tensor a, Tensor b, Tensor bias) -> Tensor");
  m.def(
      "matmul_cluster_gelu_saving(Tensor a, Tensor b, Tensor bias) -> (Tensor, "
      "Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_cluster_only", TORCH_BOX(&matmul_cluster_only));
  m.impl("matmul_cluster_stored", TORCH_BOX(&matmul_cluster_stored));
  m.impl("matmul_cluster", TORCH_BOX(&matmul_cluster));
  m.impl("matmul_cluster_gelu", TORCH_BOX(&matmul_cluster_gelu));
  m.impl("matmul_cluster_gelu_saving", TORCH_BOX(&matmul_cluster_gelu_saving));
}
#endif
