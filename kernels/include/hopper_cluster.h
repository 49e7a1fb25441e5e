// hopper_cluster.h: what a cluster of matmul_cluster works on: its configuration, its
// tiles in shared memory, and the tile scheduler.
#pragma once

#include <numeric>

#include "hopper_matmul.h"
#include "hopper_parts.h"
#include "hopper_wgmma.h"

namespace hopper {

constexpr int kWarps = kConsumers * kWarpGroup / 32;
constexpr int kWarpRows = 16;  // a warp's of the 64 rows of a wgmma
constexpr int kBuffers = 2;    // panels of c that a warp may have in flight

struct StagingBuffers {
  bfloat16 panels[kBuffers][kWarpRows][kPanel];  // of one warp, row-major
};
static_assert(sizeof(StagingBuffers::panels[0]) % 1024 == 0,
              "panels begin where the swizzle's pattern begins");

// A block computes tiles of m x n elements of c, and a cluster has `cluster` blocks.
template <int n_, int cluster_, bool e4m3_ = false>
struct TileConfig {
  static constexpr bool e4m3 = e4m3_;  // factors of 8 bits (hopper_fp8.h)
  static constexpr int m = kM, n = n_, panels = n / kPanel, cluster = cluster_;
  static constexpr int stages = n > 128 ? 4 : 6;
  // Lines of b, 64 elements each, that a block loads for the cluster, and those in one
  // request.
  static constexpr int lines = panels * kK / cluster, box = std::gcd(lines, kK);
  using Stage = StageOf<panels>;
  using PipelineState = PipelineStateOf<stages>;
  struct Shared : RingOf<Stage, stages> {
    alignas(1024) StagingBuffers staging[kWarps];
  };
};

// c, as the first rung writes it and as the others do. sums: a @ b, if the epilogue
// saves them.
struct Product {
  bfloat16* data;
  int rows, columns;
  TileMap panels, sums;
};

// The tile scheduler of a persistent block: its cluster does items first, first +
// stride, ..., each F::cluster * F::m x F::n elements of c.
template <typename F>
struct TileScheduler {
  int rank, first, stride;  // rank: of the block in its cluster
  // Of c, in clusters and in tiles; along k, in steps of kK.
  int cluster_rows, columns, steps;
  Parts parts;
  __device__ int end() const { return parts.items(cluster_rows * columns); }
  __device__ Work work(int number) const {
    Part part = parts.part(number, steps);
    TileIndex index(part.tile, cluster_rows, columns, kGroup);
    constexpr int elements = F::m * F::n;
    return {(index.row * F::cluster + rank) * F::m, index.column * F::n, part.first,
            part.end, parts.sums_of(part, F::cluster * elements, rank * elements)};
  }
};

}  // namespace hopper
