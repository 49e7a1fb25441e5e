// rms_norm.cu: out = x * r * weight with r = 1 / sqrt(mean(x^2) + eps) over the last
// dimension, and its backward, for float64, float32, float16, bfloat16.
//
// M rows of N elements of s bytes. Forward moves 2sMN: a row stays in registers while
// its squares are added up. Backward reads grad and x, and computes r again, which
// costs less than reading it would:
//
//   grad_x      = r * grad * weight - x * r^3 * mean(grad * weight * x)    for each row
//   grad_weight = sum over the rows of grad * x * r
//
// One kernel does both and moves 3sMN: each group of threads takes rows at equal
// distances and keeps the sums of its columns in registers. They end as a row of
// `parts` for each block, which a small second kernel adds up: P such rows take 8PN
// bytes more in float32. The order of additions is always the same, and does not depend
// on the number of SMs.
//
//   rms_norm_kernel                8 to 512 threads keep a row, or a cluster of up to
//                                  16 blocks, up to 32 floats each, and its weights
//   rms_norm_backward_kernel       the same threads have a row of x and one of grad in
//                                  shared memory, up to 16 floats each, or 32 halves,
//                                  while the next rows are copied there
//   *_long_kernel, weight_kernel   longer rows: they are read again, from the L2 cache
//                                  if they fit
//
// Memory bandwidth limits all of them. Halves are computed in float and rounded once.
// Rows of any number of columns are vectors of 16 bytes and single elements before and
// after them, as in softmax.cu. In backward the blocks of a cluster wait for each other
// in each row; that and 120 of 132 SMs with clusters of 8, 112 with those of 16, limit
// rows of 65,536 columns and more.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <tuple>

#include "async_copy.h"
#include "cluster.h"
#include "column_sums.h"
#include "matrix.h"
#include "row.h"

using ladder::ceil_div;
using ladder::Constant;
using ladder::kWarp;
using ladder::load;
using ladder::Row;
using ladder::sums_over_row;
using ladder::Vector;
using ladder::Wide;
using torch::stable::Tensor;

constexpr int kLong = 1024;  // threads that share a long row
// Threads of a block of forward that keep a row, or a cluster's part of it, at most.
template <typename T>
constexpr int kForward = sizeof(T) == 2 ? 512 : 256;
constexpr int kBlocks = 16;  // of a cluster, at most
// Of a block of a cluster, unless the largest cluster needs more: then several fit on
// an SM, and one computes while another loads.
constexpr int kClusterThreads = 256;
// Blocks of forward that an SM should have room for: up to 64 registers a thread, 96 if
// a row is not of halves.
template <typename T, int warps>
constexpr int kResident = std::max<int>(
    1, (sizeof(T) == 2 ? 1024 : 640) / (warps > 1 ? kForward<T> : ladder::kRowThreads));
constexpr int kThreads = 132 * 512;  // of backward, on an H200 all at a time
// Rows of x and of grad in shared memory: up to 192 KB, if there is room.
template <typename T>
constexpr int kStages = sizeof(T) == 2 ? 5 : 3;
// Vectors of a row that a thread has in backward: 16 floats or 8 doubles.
template <typename T>
constexpr int kBackward = (sizeof(T) == 8 ? 8 : 16) / Vector<T>::size;
// The same for a row that 512 threads cannot keep so: 32 halves.
template <typename T>
constexpr int kBackwardLong = sizeof(T) == 2 ? 4 : kBackward<T>;
constexpr int kSumBytes = 10 * 1024;  // two pairs for each warp of a cluster, and more
constexpr int kFewRows = 64;          // for which copies of the weights do not pay
constexpr int kStrip = 256;   // vectors side by side in a block of weight_kernel
constexpr int kBands = 1024;  // blocks of weight_kernel, about

__device__ inline float rms_scale(float mean_of_squares, float eps) {
  return rsqrtf(mean_of_squares + eps);
}
__device__ inline double rms_scale(double mean_of_squares, double eps) {
  return 1 / sqrt(mean_of_squares + eps);
}

// The elements of a vector that was loaded as one word.
template <typename T, typename Word, typename W, int size>
__device__ void widen(const Word& word, W (&wide)[size]) {
  if constexpr (std::is_same_v<T, torch::headeronly::BFloat16> && sizeof(word) == 16) {
    // A bfloat16 is the upper half of a float: an instruction for each, where nvcc
    // takes two for every other one.
    unsigned int pairs[4];
    memcpy(pairs, &word, 16);
#pragma unroll
    for (int j = 0; j < 8; ++j)
      wide[j] =
          __uint_as_float(j % 2 ? pairs[j / 2] & 0xffff0000u : pairs[j / 2] << 16);
  } else {
    T elements[size];
    memcpy(elements, &word, sizeof(word));
    for (int j = 0; j < size; ++j) wide[j] = W(elements[j]);
  }
}

// -------------------------------------------------------------------------------------
// Forward. x, out: rows x columns; weight: columns.

// lanes: of a warp that have one row; warps: that have one, at most; a block's, if more
// than 1. vectors: of a thread. blocks: of a cluster, which have an equal share of one
// row each; most: 1 without clusters. pitch: if not 0, `weight` has copies for rows
// that begin anywhere, so many elements apart: see shift_kernel.
template <typename T, bool aligned, int lanes, int warps, int vectors, int most>
__global__ void __launch_bounds__(warps > 1 ? kForward<T> : ladder::kRowThreads,
                                  kResident<T, warps>)
    rms_norm_kernel(const T* __restrict__ x, const T* __restrict__ weight,
                    T* __restrict__ out, int64_t rows, int columns, int blocks,
                    int pitch, Wide<T> eps) {
  using V = Vector<T>;
  using W = Wide<T>;
  int threads = warps > 1 ? blockDim.x : lanes;
  int64_t block = most > 1 ? blockIdx.x / blocks : blockIdx.x,
          y = warps > 1 ? block : block * blockDim.y + threadIdx.y;
  Row<T, aligned> row(out, y, columns);
  int64_t shift = pitch > 0 ? row.before : 0;
  if constexpr (most > 1) row = row.part(ladder::Cluster::rank(), blocks);
  // A row past the end is empty; its threads take part in the shuffles.
  if (y >= rows) row.count = row.before = row.after = 0;
  uint4 values[vectors], w[vectors];  // not widened: so both fit
  ladder::load_fragment<aligned>(values, x, row.first, rows * columns, row.count,
                                 threads, T(0));
  ladder::load_fragment<aligned>(w, weight + shift * pitch,
                                 row.first - y * columns - shift, columns, row.count,
                                 threads, T(0));
  W squares[1] = {0}, single[2] = {0, 0};
  T w_single[2] = {T(0), T(0)};
  row.each_single([&](int64_t i, int k) {
    single[k] = W(x[i]);
    w_single[k] = weight[i - y * columns];
  });
  struct alignas(2 * sizeof(W)) OfWarp {  // what a block can send
    W squares, unused;
  };
  __shared__ ladder::ClusterValues<OfWarp, most * warps> of_warps;
  int warps_of_row = threads / kWarp * blocks;
  if constexpr (most > 1) of_warps.begin(warps_of_row);
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    W wide[V::size];
    widen<T>(values[k], wide);
    for (W value : wide) squares[0] += value * value;
  }
  if constexpr (!aligned) {
    for (W value : single) squares[0] += value * value;
  }
  if constexpr (most > 1) {
    of_warps.exchange({ladder::sum_of_lanes<kWarp>(squares[0]), 0}, blocks);
    squares[0] = 0;
    for (int i = threadIdx.x % kWarp; i < warps_of_row; i += kWarp)
      squares[0] += of_warps.at[i].squares;
    squares[0] = ladder::sum_of_lanes<kWarp>(squares[0]);
  } else {
    sums_over_row<lanes, warps>(squares);
  }
  W r = rms_scale(squares[0] * (1 / W(columns)), eps);
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    int v = k * threads + threadIdx.x;
    W wide[V::size], of_weight[V::size];
    widen<T>(values[k], wide);
    widen<T>(w[k], of_weight);
    V result;
    for (int j = 0; j < V::size; ++j) result.at[j] = T(wide[j] * (r * of_weight[j]));
    if (v < row.count) result.store(out + row.first, v);
  }
  row.each_single(
      [&](int64_t i, int k) { out[i] = T(single[k] * (r * W(w_single[k]))); });
}

// Copies of weight for rows that begin anywhere: copy s begins with element s, so that
// the weights of all vectors of a row with s elements before them are vectors, too.
template <typename T>
__global__ void shift_kernel(const T* __restrict__ weight, T* __restrict__ copies,
                             int columns, int pitch) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, from = column + blockIdx.y;
  if (from < columns) copies[int64_t(blockIdx.y) * pitch + column] = weight[from];
}

template <typename T, bool aligned>
__global__ void __launch_bounds__(kLong)
    rms_norm_long_kernel(const T* __restrict__ x, const T* __restrict__ weight,
                         T* __restrict__ out, int64_t rows, int64_t columns,
                         Wide<T> eps) {
  using V = Vector<T>;
  using W = Wide<T>;
  Row<T, aligned, int64_t> row(out, blockIdx.x, columns);
  W squares[1] = {0};
  for (int64_t v = threadIdx.x; v < row.count; v += kLong) {
    for (T value : load<aligned>(x, row.first, v, rows * columns).at)
      squares[0] += W(value) * W(value);
  }
  row.each_single([&](int64_t i, int) { squares[0] += W(x[i]) * W(x[i]); });
  sums_over_row<kWarp, kLong / kWarp>(squares);
  W r = rms_scale(squares[0] / W(columns), eps);
  for (int64_t v = threadIdx.x; v < row.count; v += kLong) {
    V value = load<aligned>(x, row.first, v, rows * columns),
      w = load<aligned>(weight, row.before, v, columns);
    for (int j = 0; j < V::size; ++j)
      value.at[j] = T(W(value.at[j]) * (r * W(w.at[j])));
    value.store(out + row.first, v);
  }
  row.each_single([&](int64_t i, int) {
    out[i] = T(W(x[i]) * (r * W(weight[i - blockIdx.x * columns])));
  });
}

// -------------------------------------------------------------------------------------
// Backward. Group y of `threads` threads of block b, of B blocks with Y groups, has
// rows b + y * B, b + (y + Y) * B, b + (y + 2 * Y) * B, ... If rows are not aligned, B
// is a multiple of a vector's size: so all rows of a block begin alike, and a thread
// has the same columns in all.

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

// Two sums as one value, which a block of a cluster can send.
template <typename W>
struct alignas(2 * sizeof(W)) Pair {
  W first, second;
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

// Both sums over a warp's lanes, through the same shuffles: half of the lanes have the
// first, half the second.
template <typename W>
__device__ W one_of_sums(W first, W second, bool second_here) {
  W mine = second_here ? second : first, other = second_here ? first : second;
  mine += __shfl_xor_sync(ladder::kAll, other, kWarp / 2);
  return ladder::sum_of_lanes<kWarp / 2>(mine);
}

// Groups in a block, which add up their sums at the end.
template <int threads>
constexpr int kGroups = threads < 128 ? 128 / threads : 1;

// Two sums over the row's threads in two steps, so that other work and the barrier can
// lie between them. Both sums go through the same shuffles.
template <typename W, int threads, bool in_a_warp = (threads < kWarp)>
struct TwoSums {
  static constexpr int warps = threads / kWarp;
  W of_warps[kGroups<threads>][2][warps];

  // All lanes of a warp must call it.
  __device__ void put(int y, W first, W second) {
    int lane = threadIdx.x % kWarp;
    bool upper = lane >= kWarp / 2;
    W mine = one_of_sums(first, second, upper);
    if (lane % (kWarp / 2) == 0) of_warps[y][upper][threadIdx.x / kWarp] = mine;
  }

  // After a barrier. All lanes of a warp must call it.
  __device__ void get(int y, W& first, W& second) const {
    bool upper = threadIdx.x / warps % 2;
    W mine = ladder::sum_of_lanes<warps>(of_warps[y][upper][threadIdx.x % warps]);
    W other = __shfl_xor_sync(ladder::kAll, mine, warps);
    first = upper ? other : mine;
    second = upper ? mine : other;
  }
};
// For several rows in a warp. Each lane has a place: no barrier is needed.
template <typename W, int threads>
struct TwoSums<W, threads, true> {
  Pair<W> of_lanes[kGroups<threads>][threads];

  __device__ void put(int y, W first, W second) {
    of_lanes[y][threadIdx.x] = {ladder::sum_of_lanes<threads>(first),
                                ladder::sum_of_lanes<threads>(second)};
  }
  __device__ void get(int y, W& first, W& second) const {
    auto [one, two] = of_lanes[y][threadIdx.x];
    first = one, second = two;
  }
};

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

// A block for each row. Leaves r in scales, for weight_kernel.
template <typename T, bool aligned>
__global__ void __launch_bounds__(kLong)
    rms_norm_backward_long_kernel(const T* __restrict__ grad, const T* __restrict__ x,
                                  const T* __restrict__ weight, T* __restrict__ grad_x,
                                  Wide<T>* __restrict__ scales, int64_t rows,
                                  int64_t columns, Wide<T> eps) {
  using V = Vector<T>;
  using W = Wide<T>;
  Row<T, aligned, int64_t> row(grad_x, blockIdx.x, columns);
  W both[2] = {0, 0};
  // Calls visit(grad, x, weight, element) for all elements of the row, in vectors of
  // these and then one by one.
  auto each = [&](auto visit_vector, auto visit_single) {
    for (int64_t v = threadIdx.x; v < row.count; v += kLong)
      visit_vector(load<aligned>(grad, row.first, v, rows * columns),
                   load<aligned>(x, row.first, v, rows * columns),
                   load<aligned>(weight, row.before, v, columns), v);
    row.each_single([&](int64_t i, int) {
      visit_single(W(grad[i]), W(x[i]), W(weight[i - blockIdx.x * columns]), i);
    });
  };
  auto add = [&](W g, W value, W w) {
    both[0] += value * value;
    both[1] += g * w * value;
  };
  each(
      [&](V g, V value, V w, int64_t) {
        for (int j = 0; j < V::size; ++j) add(W(g.at[j]), W(value.at[j]), W(w.at[j]));
      },
      [&](W g, W value, W w, int64_t) { add(g, value, w); });
  sums_over_row<kWarp, kLong / kWarp>(both);
  Coefficients<W> coefficients(both[0], both[1], W(columns), eps);
  auto gradient = [&](W g, W value, W w) {
    return T(coefficients.r * g * w - coefficients.c * value);
  };
  each(
      [&](V g, V value, V w, int64_t v) {
        for (int j = 0; j < V::size; ++j)
          value.at[j] = gradient(W(g.at[j]), W(value.at[j]), W(w.at[j]));
        value.store(grad_x + row.first, v);
      },
      [&](W g, W value, W w, int64_t i) { grad_x[i] = gradient(g, value, w); });
  if (threadIdx.x == 0) scales[blockIdx.x] = coefficients.r;
}

// A block goes down a band of rows in a strip of kStrip vectors: row blockIdx.y of
// parts. The thread behind the last vector has the columns that do not fill one.
template <typename T, bool aligned>
__global__ void __launch_bounds__(kStrip)
    weight_kernel(const T* __restrict__ grad, const T* __restrict__ x,
                  const Wide<T>* __restrict__ scales, Wide<T>* __restrict__ parts,
                  int64_t rows, int64_t columns, int64_t band) {
  using V = Vector<T>;
  using W = Wide<T>;
  int64_t v = int64_t(blockIdx.x) * kStrip + threadIdx.x, column = v * V::size,
          end = min(rows, (blockIdx.y + 1) * band), n = rows * columns;
  W sums[V::size] = {};
  if (column + V::size <= columns) {
    for (int64_t row = blockIdx.y * band; row < end; ++row) {
      V g = load<aligned>(grad, row * columns, v, n),
        value = load<aligned>(x, row * columns, v, n);
      W r = scales[row];
      for (int j = 0; j < V::size; ++j) sums[j] += r * W(g.at[j]) * W(value.at[j]);
    }
  } else if constexpr (!aligned) {
    for (int64_t row = blockIdx.y * band; row < end; ++row) {
      for (int j = 0; j < V::size; ++j) {
        int64_t i = row * columns + column + j;
        if (column + j < columns) sums[j] += scales[row] * W(grad[i]) * W(x[i]);
      }
    }
  }
  for (int j = 0; j < V::size; ++j) {
    if (column + j < columns) parts[blockIdx.y * columns + column + j] = sums[j];
  }
}

// -------------------------------------------------------------------------------------
// Launchers

// How many clusters of this many blocks backward has: as many as an H100 runs at a
// time. If rows begin anywhere it must be a multiple of 8, so that all of a cluster
// begin alike: fewer, or, if each has enough rows then, 56, which run in some waves.
inline int64_t clusters_of(int blocks, int64_t rows, bool aligned) {
  int at_a_time = blocks == 2 ? 66 : (blocks < 16 ? 120 : 112) / blocks;
  if (aligned || blocks == 2) return at_a_time;
  return rows < 2048 && blocks < 16 ? at_a_time / 8 * 8 : 56;
}

// Calls go(threads as a Constant) with the fewest of `threads` that can keep a row in
// registers, `vectors` each. Returns false if none can. Doubles, which are rare, have
// no block between 128 threads and the largest: fewer kernels to build.
template <typename T, int... threads, typename Go>
bool with_fewest_threads(int64_t row_vectors, int vectors, Go go) {
  auto attempt = [&](auto per_row) {
    if constexpr (sizeof(T) < 8 || per_row == 128 ||
                  per_row == std::max({threads...})) {
      if (row_vectors > vectors * per_row) return false;
      go(per_row);
      return true;
    }
    return false;
  };
  return (attempt(Constant<threads>()) || ...);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  ladder::Matrix m = ladder::check_x_and_vector(x, weight, "weight");
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (x.numel() == 0) return out;  // a grid of 0 blocks is an error
  cudaStream_t stream = ladder::current_stream(x);
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    using T = scalar_t;
    const T *px = x.const_data_ptr<T>(), *pw = weight.const_data_ptr<T>();
    T* po = out.mutable_data_ptr<T>();
    Tensor copies;
    auto launch = [&](auto aligned) {
      int64_t vectors = m.columns / Vector<T>::size;
      constexpr int most = ladder::kWidened<T>;  // of a thread
      int pitch = 0;
      auto in_a_warp = [&](auto lanes, auto each) {
        constexpr int height = ladder::rows_of_block(lanes);
        if (vectors > lanes * each) return false;
        rms_norm_kernel<T, aligned, lanes, 1, each, 1>
            <<<ceil_div(m.rows, height), dim3(lanes, height), 0, stream>>>(
                px, pw, po, m.rows, m.columns, 1, pitch, Wide<T>(eps));
        return true;
      };
      if constexpr (aligned && sizeof(T) < 8) {  // fewer kernels for doubles
        if (ladder::in_few_lanes(in_a_warp) || in_a_warp(Constant<16>(), Constant<2>()))
          return;
      }
      constexpr Constant<most> all;
      if (in_a_warp(Constant<8>(), all) || in_a_warp(Constant<kWarp>(), all)) return;
      constexpr int warps = kForward<T> / kWarp;
      auto [blocks, threads] =
          ladder::threads_of_row(vectors, most, kForward<T>, kClusterThreads, kBlocks);
      constexpr auto clusters =
          rms_norm_kernel<T, aligned, kWarp, warps, most, kBlocks>;
      if (blocks == 1) {
        rms_norm_kernel<T, aligned, kWarp, warps, most, 1>
            <<<m.rows, threads, 0, stream>>>(px, pw, po, m.rows, m.columns, 1, pitch,
                                             Wide<T>(eps));
        return;
      }
      bool copy = !aligned && m.rows >= kFewRows && threads <= kForward<T>;
      if (copy) {
        pitch = (vectors + 1) * Vector<T>::size;
        copies = torch::stable::new_empty(weight, {Vector<T>::size, pitch});
        shift_kernel<<<dim3(ceil_div(m.columns, kLong), Vector<T>::size), kLong, 0,
                       stream>>>(pw, copies.mutable_data_ptr<T>(), m.columns, pitch);
      }
      if (threads > kForward<T> ||
          !ladder::launch_clusters<clusters, kBlocks, kForward<T>>(
              m.rows, {blocks, int(threads)}, stream, px,
              copy ? copies.const_data_ptr<T>() : pw, po, m.rows, int(m.columns),
              blocks, pitch, Wide<T>(eps))) {
        rms_norm_long_kernel<T, aligned>
            <<<m.rows, kLong, 0, stream>>>(px, pw, po, m.rows, m.columns, Wide<T>(eps));
      }
    };
    ladder::with_alignment<T>(m.columns, launch, px, pw, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& x,
                                             const Tensor& weight, double eps) {
  ladder::Matrix m = ladder::check_x_and_vector(x, weight, "weight");
  ladder::check_input(grad, "grad", x.scalar_type());
  ladder::check_same(grad, "grad", x, "x");
  auto guard = ladder::on_device_of(x);
  Tensor grad_x = torch::stable::empty_like(x),
         grad_weight = torch::stable::empty_like(weight);
  if (m.columns == 0) return {grad_x, grad_weight};
  if (m.rows == 0) return {grad_x, torch::stable::zero_(grad_weight)};
  cudaStream_t stream = ladder::current_stream(x);
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    using T = scalar_t;
    using W = Wide<T>;
    const T *pg = grad.const_data_ptr<T>(), *px = x.const_data_ptr<T>(),
            *pw = weight.const_data_ptr<T>();
    T* po = grad_x.mutable_data_ptr<T>();
    auto wide = [&](int64_t rows, int64_t columns) {
      return torch::stable::new_empty(x, {rows, columns},
                                      ladder::wide_dtype(x.scalar_type()));
    };
    auto launch = [&](auto aligned) {
      constexpr int size = Vector<T>::size;
      int64_t row_vectors = m.columns / size;
      // Calls go with how many stages of this size have room beside the sums of warps,
      // and their bytes. Their number does not change the result. Returns false if two
      // have none.
      auto with_stages = [&](int stage, int sums, auto go) {
        int room =
            ladder::device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - sums;
        int stages = std::min(kStages<T>, room / stage);
        return stages >= 2 && go(stages, stages * stage);
      };
      auto keep_with = [&](auto threads, auto vectors) {
        constexpr int height = kGroups<threads>;
        int64_t blocks =
            ceil_div(std::min<int64_t>(m.rows, kThreads / threads), height);
        if (!aligned) blocks = std::max<int64_t>(1, blocks / size) * size;
        Tensor parts = wide(blocks, m.columns);
        auto kernel = rms_norm_backward_kernel<T, aligned, threads, vectors, 1>;
        auto go = [&](int stages, int bytes) {
          STD_CUDA_CHECK(cudaFuncSetAttribute(
              kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
          kernel<<<blocks, dim3(threads, height), bytes, stream>>>(
              pg, px, pw, po, parts.template mutable_data_ptr<W>(), m.rows, m.columns,
              1, stages, W(eps));
          ladder::sum_parts_of_vectors<T, aligned ? size : 1>(parts, grad_weight,
                                                              blocks);
          return true;
        };
        return with_stages(2 * vectors * 16 * threads * height, 1024, go);
      };
      bool kept = false;
      auto keep_narrow = [&](auto threads, auto vectors) {
        if (!kept && row_vectors <= threads * vectors)
          kept = keep_with(threads, vectors);
      };
      auto keep = [&](auto threads) {
        kept = keep_with(threads, Constant<kBackward<T>>());
      };
      if constexpr (sizeof(T) < 8) {  // fewer kernels for doubles
        constexpr Constant<1> one;
        if constexpr (aligned) {
          with_fewest_threads<T, 1, 2, 4, 8>(
              row_vectors, one, [&](auto threads) { keep_narrow(threads, one); });
        }
        keep_narrow(Constant<8>(), Constant<2>());
        if constexpr (aligned) keep_narrow(Constant<32>(), one);
      }
      if (!kept)
        with_fewest_threads<T, 32, 64, 128, 256, 512>(row_vectors, kBackward<T>, keep);
      constexpr int most = 512, vectors = kBackwardLong<T>;  // of a block, of a thread
      auto keep_in_cluster = [&] {
        auto [blocks, threads] =
            ladder::threads_of_row(row_vectors, vectors, most, most, kBlocks);
        if (threads > most) return false;
        int64_t clusters =
            std::min<int64_t>(m.rows, clusters_of(blocks, m.rows, aligned));
        if (!aligned) clusters = std::max<int64_t>(1, clusters / size) * size;
        Tensor parts = wide(clusters, m.columns);
        constexpr auto kernel =
            rms_norm_backward_kernel<T, aligned, most, vectors, kBlocks>;
        auto go = [&, b = blocks, t = int(threads)](int stages, int bytes) {
          return ladder::launch_clusters<kernel, kBlocks, most>(
              clusters, {b, t, bytes, bytes}, stream, pg, px, pw, po,
              parts.template mutable_data_ptr<W>(), m.rows, int(m.columns), b, stages,
              W(eps));
        };
        if (!with_stages(2 * vectors * 16 * most, kSumBytes, go)) return false;
        ladder::sum_parts_of_vectors<T, aligned ? size : 1>(parts, grad_weight,
                                                            clusters);
        return true;
      };
      if (kept) return;
      if (row_vectors <= most * vectors
              ? keep_with(Constant<most>(), Constant<vectors>())
              : keep_in_cluster())
        return;
      int64_t strips = ceil_div(ceil_div(m.columns, size), kStrip);
      ladder::Bands bands = ladder::bands_for(m.rows, strips, 1, kBands);
      Tensor scales = wide(m.rows, 1), parts = wide(bands.count, m.columns);
      W *ps = scales.template mutable_data_ptr<W>(),
        *pp = parts.template mutable_data_ptr<W>();
      rms_norm_backward_long_kernel<T, aligned>
          <<<m.rows, kLong, 0, stream>>>(pg, px, pw, po, ps, m.rows, m.columns, W(eps));
      weight_kernel<T, aligned><<<dim3(strips, bands.count), kStrip, 0, stream>>>(
          pg, px, ps, pp, m.rows, m.columns, bands.rows);
      ladder::sum_parts_of_vectors<T, 1>(parts, grad_weight, bands.count);
    };
    ladder::with_alignment<T>(m.columns, launch, pg, px, pw, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_x, grad_weight};
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.rms_norm(x, weight), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps=1e-06) -> Tensor");
  m.def(
      "rms_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps=1e-06) -> "
      "(Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("rms_norm", TORCH_BOX(&rms_norm));
  m.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
}
