// hopper_parts.h: products whose sums are split over several clusters ("split k"), all
// of them or only those of the last tiles ("stream k"): with 66 clusters and 70 tiles,
// 62 clusters would wait for the last 4.
//
// Clusters do items, one after the other. The first items are whole tiles; every other
// tile has `count` items, each with one part of the steps along k. Its cluster leaves
// the sums in global memory, in float32, and sum_parts_kernel adds them up in an order
// that is always the same: results repeat bit for bit.
#pragma once

#include "early_launch.h"
#include "hopper_matmul.h"

namespace hopper {

// An item: steps first to end - 1 of a tile's sums. slot: where its sums go, or -1 for
// all steps.
struct Part {
  int tile, first, end, slot;
};

struct Parts {
  int whole, count;  // tiles that are one item; items of each other tile
  float* sums;       // the items' tiles, one after the other, each row-major

  __host__ __device__ int items(int tiles) const {
    return tiles <= whole ? tiles : whole + (tiles - whole) * count;
  }
  __device__ Part part(int item, int steps) const {
    if (item < whole) return {item, 0, steps, -1};
    int slot = item - whole, i = slot % count;
    return {whole + slot / count, int(int64_t(i) * steps / count),
            int(int64_t(i + 1) * steps / count), count > 1 ? slot : -1};
  }
  // Where a block leaves its sums of a part: `elements` of a cluster's tile, the
  // block's from `at` on.
  __device__ float* sums_of(const Part& part, int elements, int at) const {
    return part.slot < 0 ? nullptr : sums + int64_t(part.slot) * elements + at;
  }
};

constexpr int kGroup = 8;  // rows of clusters that run together

// What a cluster computes at a time: a block's tile of c begins at (row, column), and
// its sums have steps first to end - 1 along k.
struct Work {
  int row, column, first, end;
  float* sums;  // where to leave sums of some of the steps; null for all of them
};

// c in tiles of m x n elements, numbered as by TileIndex.
struct Tiles {
  int m, n, rows, columns, group;
};

// A block of sum_parts_kernel has so many threads side by side, each with 8 elements,
// and so many shares of the parts: with 24 parts one thread would wait for loads six
// times, for longer than the products of a small tile take.
constexpr int kSumThreads = 64, kSumShares = 4;

// c = the parts' sums, changed by the epilogue, for each tile from number `whole` on
// (blockIdx.y).
template <typename Epilogue>
__global__ void __launch_bounds__(kSumThreads* kSumShares)
    sum_parts_kernel(Parts parts, Tiles tiles, bfloat16* c, int m, int n,
                     Epilogue epilogue) {
  __shared__ float shares[kSumShares - 1][8][kSumThreads];
  ladder::wait_for_kernel_before();
  int thread = threadIdx.x, share = threadIdx.y;
  int at = (blockIdx.x * kSumThreads + thread) * 8;
  TileIndex tile(parts.whole + blockIdx.y, tiles.rows, tiles.columns, tiles.group);
  int row = tile.row * tiles.m + at / tiles.n,
      column = tile.column * tiles.n + at % tiles.n;
  int64_t elements = int64_t(tiles.m) * tiles.n;
  bool inside = at < elements && row < m && column < n;
  const float* sums = parts.sums + blockIdx.y * parts.count * elements + at;
  float total[8] = {};
#pragma unroll 8
  for (int part = share; part < (inside ? parts.count : 0); part += kSumShares) {
    for (int half = 0; half < 2; ++half) {
      float4 four = *reinterpret_cast<const float4*>(sums + part * elements + 4 * half);
      total[4 * half] += four.x, total[4 * half + 1] += four.y;
      total[4 * half + 2] += four.z, total[4 * half + 3] += four.w;
    }
  }
  for (int i = 0; share > 0 && i < 8; ++i) shares[share - 1][i][thread] = total[i];
  __syncthreads();  // the shares are written
  if (share > 0 || !inside) return;
  for (int other = 0; other < kSumShares - 1; ++other) {
    for (int i = 0; i < 8; ++i) total[i] += shares[other][i][thread];
  }
  uint32_t eight[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    eight[i] = word_of(epilogue({total[2 * i], total[2 * i + 1]},
                                epilogue.of_columns(column + 2 * i)));
  *reinterpret_cast<uint4*>(&c[int64_t(row) * n + column]) = {eight[0], eight[1],
                                                              eight[2], eight[3]};
}

// The memory for the parts' sums, while their kernels are launched.
struct SumsOfParts {
  Tiles tiles;
  Parts parts;
  ladder::Tensor memory;

  // Tiles from number `whole` on have `count` parts each.
  SumsOfParts(const ladder::Tensor& like, Tiles tiles, int64_t whole, int count)
      : tiles(tiles) {
    int64_t all = int64_t(tiles.rows) * tiles.columns;
    parts = {int(count == 1 ? all : std::min(whole, all)), count, nullptr};
    if (parts.whole == all) return;
    memory = torch::stable::new_empty(like,
                                      {(all - parts.whole) * count * tiles.m * tiles.n},
                                      torch::headeronly::ScalarType::Float);
    parts.sums = memory.mutable_data_ptr<float>();
  }
  int64_t items() const { return parts.items(tiles.rows * tiles.columns); }
  // Launches sum_parts_kernel, if there are parts.
  template <typename Epilogue>
  void add_up(bfloat16* c, int m, int n, Epilogue epilogue, cudaStream_t stream) const {
    if (!parts.sums) return;
    dim3 grid(ladder::ceil_div(tiles.m * tiles.n, 8 * kSumThreads),
              tiles.rows * tiles.columns - parts.whole);
    ladder::EarlyLaunch launch(grid, dim3(kSumThreads, kSumShares), 0, stream);
    STD_CUDA_CHECK(cudaLaunchKernelEx(&launch.config, sum_parts_kernel<Epilogue>, parts,
                                      tiles, c, m, n, epilogue));
  }
};

}  // namespace hopper
