// rms_norm_backward.h: the kernel of rms_norm_backward.cu for rows that a block or a
// cluster can keep.
//
// Group y of `threads` threads of block b, of B blocks with Y groups, has rows
// b + y * B, b + (y + Y) * B, b + (y + 2 * Y) * B, ... If rows are not aligned, B is a
// multiple of a vector's size: so all rows of a block begin alike, and a thread has the
// same columns in all.
#pragma once

#include "async_copy.h"
#include "cluster.h"
#include "early_launch.h"
#include "rms_norm.h"
#include "two_sums.h"

namespace ladder {

// What backward needs of a row: the two sums, from those of the row's threads.
template <typename W>
struct Coefficients {
  W r, c;  // grad_x = r * grad * weight - c * x
  __device__ Coefficients(W squares, W products, W count, W eps) {
    W share = 1 / count;  // the same for all rows: a loop divides once
    r = rms_scale(squares * share, eps);
    c = r * r * r * (products * share);
  }
};

// Starts the copies of a thread's vectors to slot(0), slot(1), ... The first begins
// with element `from` of p, which has n; the next are `step` elements apart. A vector
// that does not begin at a multiple of 16 bytes is copied at once.
template <bool aligned, typename Slot, typename T, int vectors>
__device__ void copy_fragment(ladder::AsyncCopies& copies, Slot slot,
                              const T* __restrict__ p, int64_t from, int step,
                              int64_t n, const bool (&inside)[vectors]) {
  bool copy = aligned || reinterpret_cast<uintptr_t>(p + from) % 16 == 0;
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    int64_t i = from + k * step;
    if (!inside[k]) continue;
    if (copy) {
      copies.start<16>(&slot(k), p + i, true);
    } else {
      slot(k) = ladder::load_anywhere(p, i, n);
    }
  }
}

// The rows go through shared memory. A thread copies the vectors that it will read, so
// it waits for its own copies only. While it computes a row's gradient it also adds up
// the next row, whose sums other warps need a turn later: no warp waits for a
// reduction. The rows after that are in flight.
//
// most: 1, or the blocks of a cluster at most, which have a share of the row each. A
// group is the cluster then, and `threads` the most that a block has.
template <typename T, bool aligned, int threads, int vectors, int most>
__global__ void __launch_bounds__(threads* kGroups<threads>,
                                  512 / (threads * kGroups<threads>))
    rms_norm_backward_kernel(const T* __restrict__ grad, const T* __restrict__ x,
                             const T* __restrict__ weight, T* __restrict__ grad_x,
                             Wide<T>* __restrict__ parts, int64_t rows, int columns,
                             int blocks, int stages, Wide<T> eps) {
  using V = Vector<T>;
  using W = Wide<T>;
  constexpr int block = threads * kGroups<threads>;
  extern __shared__ __align__(16) char memory[];
  // Of a stage: grad, and x.
  auto rows_of = reinterpret_cast<V(*)[2][vectors][block]>(memory);
  // Of this row, and of the next.
  __shared__ std::conditional_t<(most > 1),
                                ladder::ClusterValues<Pair<W>, most * threads / kWarp>,
                                TwoSums<W, threads>>
      sums_of_row[2];
  int apart = most > 1 ? blockDim.x : threads, warps_of_row = apart / kWarp * blocks;
  if constexpr (most > 1) {
    for (auto& of_warps : sums_of_row) of_warps.begin(warps_of_row);
  }
  int y = kGroups<threads> > 1 ? threadIdx.y : 0, thread = y * threads + threadIdx.x;
  int64_t b = most > 1 ? blockIdx.x / blocks : blockIdx.x,
          of_grid = most > 1 ? gridDim.x / blocks : gridDim.x,
          groups = of_grid * kGroups<threads>;
  // A block's rows lie side by side, or, not aligned, so that all of it begin alike.
  int64_t first = aligned ? b * kGroups<threads> : b;
  int64_t begin = first + y * (aligned ? 1 : of_grid);
  int iterations = ceil_div(max(int64_t(0), rows - first), groups);  // most: group 0's
  int count = begin < rows ? ceil_div(rows - begin, groups) : 0;
  Row<T, aligned> row(grad_x, begin, columns);
  if constexpr (most > 1) row = row.part(ladder::Cluster::rank(), blocks);
  int column = row.first - begin * columns;  // of the first vector
  // Elements: of this row's first vector that the thread has, to its next row.
  int64_t at = row.first + int(threadIdx.x) * V::size, step = groups * columns,
          ahead = stages * step;
  bool inside[vectors];
#pragma unroll
  for (int k = 0; k < vectors; ++k) inside[k] = k * apart + threadIdx.x < row.count;
  ladder::AsyncCopies copies;
  int between = apart * V::size;  // elements, of a thread's vectors
  int64_t n = rows * columns;
  auto request_of = [&](auto& to, const T* p, int64_t from) {
    auto slot = [&](int k) -> V& { return to[k][thread]; };
    copy_fragment<aligned>(copies, slot, p, from, between, n, inside);
  };
  auto request = [&](int iteration, int64_t from, int stage) {
    if (iteration < count) {
      request_of(rows_of[stage][0], grad, from);
      request_of(rows_of[stage][1], x, from);
    }
    copies.commit();
  };
#pragma unroll 1  // less code
  for (int stage = 0; stage < stages; ++stage) request(stage, at + stage * step, stage);
  // What a thread has of a row's single elements, in registers, a turn before it is
  // used.
  struct Singles {
    T g[2], value[2];
  };
  auto singles = [&](int iteration) {
    Singles s = {{T(0), T(0)}, {T(0), T(0)}};
    if (!aligned && iteration < count) {
      row.each_single([&](int64_t i, int k) {
        s.g[k] = grad[i + iteration * step];
        s.value[k] = x[i + iteration * step];
      });
    }
    return s;
  };
  Singles now = singles(0), next_singles = singles(1);
  T w_single[2] = {T(0), T(0)};
  row.each_single([&](int64_t i, int k) { w_single[k] = weight[i - begin * columns]; });
  V w[vectors];
  W sums[vectors][V::size] = {}, sums_single[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    int v = k * apart + threadIdx.x;
    w[k] = ladder::filled<V>(T(0));
    if (inside[k]) w[k] = load<aligned>(weight, column, v, columns);
    // Zeros where no copy writes.
#pragma unroll 1
    for (int stage = inside[k] ? count : 0; stage < stages; ++stage) {
      for (int which = 0; which < 2; ++which)
        ladder::filled<V>(T(0)).store(rows_of[stage][which][k][thread].at, 0);
    }
  }
  auto add_up = [&](int iteration, int stage, const Singles& single) {
    W squares = 0, products = 0;
    auto add = [&](W g, W weight, W value) {
      squares += value * value;
      products += g * weight * value;
    };
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      W g[V::size], value[V::size];
      widen<T>(V::load(rows_of[stage][0][k][thread].at, 0), g);
      widen<T>(V::load(rows_of[stage][1][k][thread].at, 0), value);
#pragma unroll
      for (int j = 0; j < V::size; ++j) add(g[j], W(w[k].at[j]), value[j]);
    }
    if constexpr (!aligned) {
      for (int k = 0; k < 2; ++k)
        add(W(single.g[k]), W(w_single[k]), W(single.value[k]));
    }
    auto& sums = sums_of_row[iteration % 2];
    if constexpr (most > 1) {
      if (iteration == iterations) return;  // who would receive them may have ended
      bool upper = threadIdx.x % kWarp >= kWarp / 2;
      W mine = one_of_sums(squares, products, upper),
        other = __shfl_xor_sync(ladder::kAll, mine, kWarp / 2);
      sums.send({upper ? other : mine, upper ? mine : other}, blocks);
    } else {
      sums.put(y, squares, products);
    }
  };
  // The sums of a row's threads.
  auto total_of = [&](int iteration, W& squares, W& products) {
    auto& sums = sums_of_row[iteration % 2];
    if constexpr (most > 1) {
      sums.wait(iteration / 2, warps_of_row);
      squares = products = 0;
      for (int i = threadIdx.x % kWarp; i < warps_of_row; i += kWarp) {
        squares += sums.at[i].first;
        products += sums.at[i].second;
      }
      bool upper = threadIdx.x % kWarp >= kWarp / 2;
      W mine = one_of_sums(squares, products, upper),
        other = __shfl_xor_sync(ladder::kAll, mine, kWarp / 2);
      squares = upper ? other : mine;
      products = upper ? mine : other;
    } else {
      sums.get(y, squares, products);
    }
  };
  // Clusters wait for all values of a row instead, and lanes of a warp for none.
  auto barrier = [&] {
    if constexpr (most == 1 && threads >= kWarp) __syncthreads();
  };
  auto wait_for_next = [&] {  // for all groups of copies but the latest `stages` - 2
    if (stages > 4) return copies.template wait<3>();
    if (stages > 3) return copies.template wait<2>();
    if (stages > 2) return copies.template wait<1>();
    copies.template wait<0>();
  };
  wait_for_next();
  add_up(0, 0, now);
  barrier();  // the first row's sums are written
  for (int iteration = 0, stage = 0; iteration < iterations; ++iteration) {
    int next = stage + 1 < stages ? stage + 1 : 0;
    wait_for_next();
    W squares, products;
    total_of(iteration, squares, products);
    add_up(iteration + 1, next, next_singles);
    if (kGroups<threads> == 1 || iteration < count) {
      Coefficients<W> coefficients(squares, products, W(columns), eps);
      auto gradient = [&](W g, W weight, W value, W& sum) {
        W scaled = coefficients.r * g;
        sum += scaled * value;
        return T(scaled * weight - coefficients.c * value);
      };
#pragma unroll
      for (int k = 0; k < vectors; ++k) {
        W g[V::size], value[V::size];
        widen<T>(V::load(rows_of[stage][0][k][thread].at, 0), g);
        widen<T>(V::load(rows_of[stage][1][k][thread].at, 0), value);
        V result;
#pragma unroll
        for (int j = 0; j < V::size; ++j)
          result.at[j] = gradient(g[j], W(w[k].at[j]), value[j], sums[k][j]);
        if (inside[k]) result.store(grad_x + at, k * apart);
      }
      row.each_single([&](int64_t i, int k) {
        grad_x[i + iteration * step] =
            gradient(W(now.g[k]), W(w_single[k]), W(now.value[k]), sums_single[k]);
      });
    }
    now = next_singles;
    next_singles = singles(iteration + 2);
    request(iteration + stages, at + ahead, stage);
    at += step;
    stage = next;
    barrier();  // the next row's sums are written, and this row's are read
  }
  ladder::let_next_kernel_begin();
  // The block's first group adds up the sums of all. Aligned, element j of all vectors
  // lies side by side: a warp writes lines.
  auto of_groups = reinterpret_cast<W(*)[vectors * V::size + 2][threads]>(memory);
  auto total = [&](W& sum, int index) {
    for (int other = 1; other < kGroups<threads>; ++other)
      sum += of_groups[other][index][threadIdx.x];
  };
  if constexpr (kGroups<threads> > 1) {
    if (threads < kWarp) __syncthreads();  // all groups have read their rows
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      for (int j = 0; j < V::size; ++j)
        of_groups[y][k * V::size + j][threadIdx.x] = sums[k][j];
    }
    for (int k = 0; k < 2; ++k)
      of_groups[y][vectors * V::size + k][threadIdx.x] = sums_single[k];
    __syncthreads();  // the sums are written
    if (y > 0) return;
  }
  W* part = parts + b * columns;
  int row_vectors = columns / V::size;
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    if (inside[k]) {
      int i = column + (k * apart + threadIdx.x) * V::size;
      for (int j = 0; j < V::size; ++j) {
        total(sums[k][j], k * V::size + j);
        part[aligned ? j * row_vectors + i / V::size : i + j] = sums[k][j];
      }
    }
  }
  row.each_single([&](int64_t i, int k) {
    total(sums_single[k], vectors * V::size + k);
    part[i - begin * columns] = sums_single[k];
  });
}

}  // namespace ladder
