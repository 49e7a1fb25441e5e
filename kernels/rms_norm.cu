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
// on the GPU.
//
//   rms_norm_kernel                32 to 1,024 threads keep a row, up to 32 floats
//                                  each, and its weights
//   rms_norm_backward_kernel       32 to 512 threads have a row of x and one of grad in
//                                  shared memory, up to 16 floats each, while the next
//                                  rows are copied there
//   *_long_kernel, weight_kernel   longer rows: they are read again, from the L2 cache
//                                  if they fit
//
// Memory bandwidth limits all of them. Halves are computed in float and rounded once.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <tuple>

#include "async_copy.h"
#include "column_sums.h"
#include "matrix.h"
#include "row.h"

using ladder::ceil_div;
using ladder::Constant;
using ladder::sums_over_row;
using ladder::Vector;
using ladder::Wide;
using torch::stable::Tensor;

constexpr int kLong = 1024;  // threads that share a long row
// Threads of forward on an SM: up to 64 registers each, 96 if a row is not of halves.
template <typename T>
constexpr int kResident = sizeof(T) == 2 ? 1024 : 640;
constexpr int kThreads = 132 * 512;  // of backward, on an H200 all at a time
// Rows of x and of grad in shared memory: up to 192 KB, if there is room.
template <typename T>
constexpr int kStages = sizeof(T) == 2 ? 5 : 3;
// Vectors of a row that a thread has in backward: 16 floats or 8 doubles.
template <typename T, int bytes>
constexpr int kBackward = (sizeof(T) == 8 ? 8 : 16) / Vector<T, bytes>::size;
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
// Forward. x, out: rows of row_vectors vectors of `bytes` bytes; weight: one row.

template <typename T, int bytes, int threads>
__global__ void __launch_bounds__(threads* ladder::rows_of_block(threads),
                                  kResident<T> /
                                      (threads * ladder::rows_of_block(threads)))
    rms_norm_kernel(const T* __restrict__ x, const T* __restrict__ weight,
                    T* __restrict__ out, int64_t rows, int row_vectors, Wide<T> eps) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  // a row past the end is empty; its threads take part in the shuffles.
  int count = row < rows ? row_vectors : 0;
  constexpr int vectors = ladder::kWidened<T, bytes>;
  using Word = typename ladder::Word<bytes>::type;
  Word values[vectors], w[vectors];  // not widened: so both fit
  ladder::load_fragment<threads>(values, x, row * row_vectors, count, Word{});
  ladder::load_fragment<threads>(w, weight, 0, count, Word{});
  W squares[1] = {0}, share = 1 / (W(row_vectors) * V::size);
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    W wide[V::size];
    widen<T>(values[k], wide);
    for (W value : wide) squares[0] += value * value;
  }
  sums_over_row<threads>(squares);
  W r = rms_scale(squares[0] * share, eps);
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    int v = k * threads + threadIdx.x;
    W wide[V::size], of_weight[V::size];
    widen<T>(values[k], wide);
    widen<T>(w[k], of_weight);
    V result;
    for (int j = 0; j < V::size; ++j) result.at[j] = T(wide[j] * (r * of_weight[j]));
    if (v < count) result.store(out, row * row_vectors + v);
  }
}

template <typename T, int bytes>
__global__ void __launch_bounds__(kLong)
    rms_norm_long_kernel(const T* __restrict__ x, const T* __restrict__ weight,
                         T* __restrict__ out, int64_t row_vectors, Wide<T> eps) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t first = int64_t(blockIdx.x) * row_vectors;
  W squares[1] = {0};
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V value = V::load(x, first + v);
    for (int j = 0; j < V::size; ++j) squares[0] += W(value.at[j]) * W(value.at[j]);
  }
  sums_over_row<kLong>(squares);
  W r = rms_scale(squares[0] / (W(row_vectors) * V::size), eps);
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V value = V::load(x, first + v), w = V::load(weight, v);
    for (int j = 0; j < V::size; ++j)
      value.at[j] = T(W(value.at[j]) * (r * W(w.at[j])));
    value.store(out, first + v);
  }
}

// -------------------------------------------------------------------------------------
// Backward. Group g of `threads` threads has rows g, g + groups, g + 2 * groups, ...

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

// Groups in a block, which add up their sums at the end.
template <int threads>
constexpr int kGroups = threads < 128 ? 128 / threads : 1;

// Two sums over the row's threads in two steps, so that other work and the barrier can
// lie between them. Both sums go through the same shuffles: half of the lanes have one,
// half the other.
template <typename W, int threads>
struct TwoSums {
  static constexpr int warps = threads / ladder::kWarp;
  W of_warps[kGroups<threads>][2][warps];

  // All lanes of a warp must call it.
  __device__ void put(int y, W first, W second) {
    int lane = threadIdx.x % ladder::kWarp;
    bool upper = lane >= ladder::kWarp / 2;
    W mine = upper ? second : first, other = upper ? first : second;
    mine += __shfl_xor_sync(ladder::kAll, other, ladder::kWarp / 2);
    mine = ladder::sum_of_lanes<ladder::kWarp / 2>(mine);
    if (lane % (ladder::kWarp / 2) == 0)
      of_warps[y][upper][threadIdx.x / ladder::kWarp] = mine;
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

// The rows go through shared memory. A thread copies the vectors that it will read, so
// it waits for its own copies only. While it computes a row's gradient it also adds up
// the next row, whose sums other warps need a turn later: no warp waits for a
// reduction. The rows after that are in flight.
template <typename T, int bytes, int threads>
__global__ void __launch_bounds__(threads* kGroups<threads>,
                                  512 / (threads * kGroups<threads>))
    rms_norm_backward_kernel(const T* __restrict__ grad, const T* __restrict__ x,
                             const T* __restrict__ weight, T* __restrict__ grad_x,
                             Wide<T>* __restrict__ parts, int64_t rows, int row_vectors,
                             int64_t groups, int stages, Wide<T> eps) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  constexpr int vectors = kBackward<T, bytes>, block = threads * kGroups<threads>;
  extern __shared__ __align__(16) char memory[];
  // Of a stage: grad, and x.
  auto rows_of = reinterpret_cast<V(*)[2][vectors][block]>(memory);
  __shared__ TwoSums<W, threads> sums_of_row[2];  // of this row, and of the next
  int y = kGroups<threads> > 1 ? threadIdx.y : 0, thread = y * threads + threadIdx.x;
  int64_t of_block = int64_t(blockIdx.x) * kGroups<threads>, group = of_block + y;
  // Of the block's first group, which has the most rows.
  int iterations = ceil_div(rows - of_block, groups);
  int count = group < groups ? ceil_div(rows - group, groups) : 0;
  // vectors: of this row, to the next.
  int64_t at = group * row_vectors + threadIdx.x, step = groups * row_vectors;
  int64_t ahead = stages * step;
  bool inside[vectors];
#pragma unroll
  for (int k = 0; k < vectors; ++k) inside[k] = k * threads + threadIdx.x < row_vectors;
  ladder::AsyncCopies copies;
  auto request = [&](int iteration, int64_t from, int stage) {
    if (iteration < count) {
#pragma unroll
      for (int k = 0; k < vectors; ++k) {
        if (inside[k]) {
          ladder::copy_vector(copies, rows_of[stage][0][k][thread], grad,
                              from + k * threads);
          ladder::copy_vector(copies, rows_of[stage][1][k][thread], x,
                              from + k * threads);
        }
      }
    }
    copies.commit();
  };
#pragma unroll 1  // less code
  for (int stage = 0; stage < stages; ++stage) request(stage, at + stage * step, stage);
  V w[vectors];
  W sums[vectors][V::size] = {};
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    w[k] = ladder::filled<V>(T(0));
    if (inside[k]) w[k] = V::load(weight, k * threads + threadIdx.x);
    // Zeros where no copy writes.
#pragma unroll 1
    for (int stage = inside[k] ? count : 0; stage < stages; ++stage) {
      for (int which = 0; which < 2; ++which)
        ladder::filled<V>(T(0)).store(rows_of[stage][which][k][thread].at, 0);
    }
  }
  auto add_up = [&](int iteration, int stage) {
    W squares = 0, products = 0;
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      W g[V::size], value[V::size];
      widen<T>(V::load(rows_of[stage][0][k][thread].at, 0), g);
      widen<T>(V::load(rows_of[stage][1][k][thread].at, 0), value);
#pragma unroll
      for (int j = 0; j < V::size; ++j) {
        squares += value[j] * value[j];
        products += g[j] * W(w[k].at[j]) * value[j];
      }
    }
    sums_of_row[iteration % 2].put(y, squares, products);
  };
  auto wait_for_next = [&] {  // for all groups of copies but the latest `stages` - 2
    if (stages > 4) return copies.template wait<3>();
    if (stages > 3) return copies.template wait<2>();
    if (stages > 2) return copies.template wait<1>();
    copies.template wait<0>();
  };
  wait_for_next();
  add_up(0, 0);
  __syncthreads();  // the first row's sums are written
  for (int iteration = 0, stage = 0; iteration < iterations; ++iteration) {
    int next = stage + 1 < stages ? stage + 1 : 0;
    wait_for_next();
    W squares, products;
    sums_of_row[iteration % 2].get(y, squares, products);
    add_up(iteration + 1, next);
    if (kGroups<threads> == 1 || iteration < count) {
      Coefficients<W> coefficients(squares, products, W(row_vectors) * V::size, eps);
#pragma unroll
      for (int k = 0; k < vectors; ++k) {
        W g[V::size], value[V::size];
        widen<T>(V::load(rows_of[stage][0][k][thread].at, 0), g);
        widen<T>(V::load(rows_of[stage][1][k][thread].at, 0), value);
        V result;
#pragma unroll
        for (int j = 0; j < V::size; ++j) {
          W scaled = coefficients.r * g[j];
          result.at[j] = T(scaled * W(w[k].at[j]) - coefficients.c * value[j]);
          sums[k][j] += scaled * value[j];
        }
        if (inside[k]) result.store(grad_x, at + k * threads);
      }
    }
    request(iteration + stages, at + ahead, stage);
    at += step;
    stage = next;
    __syncthreads();  // the next row's sums are written, and this row's are read
  }
  ladder::let_next_kernel_begin();
  // The block's first group adds up the sums of all. Element j of all vectors lies side
  // by side: a warp writes lines.
  auto of_groups = reinterpret_cast<W(*)[vectors][V::size][threads]>(memory);
  if constexpr (kGroups<threads> > 1) {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      for (int j = 0; j < V::size; ++j) of_groups[y][k][j][threadIdx.x] = sums[k][j];
    }
    __syncthreads();  // the sums are written
    if (y > 0) return;
  }
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    if (inside[k]) {
      for (int j = 0; j < V::size; ++j) {
        for (int other = 1; other < kGroups<threads>; ++other)
          sums[k][j] += of_groups[other][k][j][threadIdx.x];
        parts[(int64_t(blockIdx.x) * V::size + j) * row_vectors + k * threads +
              threadIdx.x] = sums[k][j];
      }
    }
  }
}

// A block for each row. Leaves r in scales, for weight_kernel.
template <typename T, int bytes>
__global__ void __launch_bounds__(kLong)
    rms_norm_backward_long_kernel(const T* __restrict__ grad, const T* __restrict__ x,
                                  const T* __restrict__ weight, T* __restrict__ grad_x,
                                  Wide<T>* __restrict__ scales, int64_t row_vectors,
                                  Wide<T> eps) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t first = int64_t(blockIdx.x) * row_vectors;
  W both[2] = {0, 0};
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V g = V::load(grad, first + v), value = V::load(x, first + v),
      w = V::load(weight, v);
    for (int j = 0; j < V::size; ++j) {
      both[0] += W(value.at[j]) * W(value.at[j]);
      both[1] += W(g.at[j]) * W(w.at[j]) * W(value.at[j]);
    }
  }
  sums_over_row<kLong>(both);
  Coefficients<W> coefficients(both[0], both[1], W(row_vectors) * V::size, eps);
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V g = V::load(grad, first + v), value = V::load(x, first + v),
      w = V::load(weight, v);
    for (int j = 0; j < V::size; ++j)
      value.at[j] =
          T(coefficients.r * W(g.at[j]) * W(w.at[j]) - coefficients.c * W(value.at[j]));
    value.store(grad_x, first + v);
  }
  if (threadIdx.x == 0) scales[blockIdx.x] = coefficients.r;
}

// A block goes down a band of rows in a strip of kStrip vectors: row blockIdx.y of
// parts.
template <typename T, int bytes>
__global__ void __launch_bounds__(kStrip)
    weight_kernel(const T* __restrict__ grad, const T* __restrict__ x,
                  const Wide<T>* __restrict__ scales, Wide<T>* __restrict__ parts,
                  int64_t rows, int64_t row_vectors, int64_t band) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t v = int64_t(blockIdx.x) * kStrip + threadIdx.x, end = (blockIdx.y + 1) * band;
  if (v >= row_vectors) return;
  W sums[V::size] = {};
  for (int64_t row = blockIdx.y * band; row < end && row < rows; ++row) {
    V g = V::load(grad, row * row_vectors + v),
      value = V::load(x, row * row_vectors + v);
    W r = scales[row];
    for (int j = 0; j < V::size; ++j) sums[j] += r * W(g.at[j]) * W(value.at[j]);
  }
  for (int j = 0; j < V::size; ++j)
    parts[(blockIdx.y * row_vectors + v) * V::size + j] = sums[j];
}

// -------------------------------------------------------------------------------------
// Launchers

// Calls go(threads as a Constant) with the fewest of `threads` that can keep a row in
// registers, `vectors` each. Returns false if none can. Doubles and single elements,
// which are rare, have no block between 128 threads and the largest: fewer kernels to
// build.
template <typename T, int bytes, int... threads, typename Go>
bool with_fewest_threads(int64_t row_vectors, int vectors, Go go) {
  auto attempt = [&](auto per_row) {
    if constexpr ((bytes == 16 && sizeof(T) < 8) || per_row <= 128 ||
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
    auto launch = [&](auto bytes) {
      int64_t row_vectors = m.columns / Vector<T, bytes>::size;
      auto keep = [&](auto threads) {
        constexpr int height = ladder::rows_of_block(threads);
        rms_norm_kernel<T, bytes, threads>
            <<<ceil_div(m.rows, height), dim3(threads, height), 0, stream>>>(
                px, pw, po, m.rows, row_vectors, Wide<T>(eps));
      };
      if (!with_fewest_threads<T, bytes, 32, 128, 256, 512, 1024>(
              row_vectors, ladder::kWidened<T, bytes>, keep))
        rms_norm_long_kernel<T, bytes>
            <<<m.rows, kLong, 0, stream>>>(px, pw, po, row_vectors, Wide<T>(eps));
    };
    ladder::with_widest<T>(m.columns, launch, px, pw, po);
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
    auto launch = [&](auto bytes) {
      int64_t row_vectors = m.columns / Vector<T, bytes>::size;
      auto keep = [&](auto threads) {
        constexpr int height = kGroups<threads>;
        int64_t groups = std::min<int64_t>(m.rows, kThreads / threads);
        int64_t blocks = ceil_div(groups, height);
        Tensor parts = wide(blocks, m.columns);
        auto kernel = rms_norm_backward_kernel<T, bytes, threads>;
        constexpr int stage = 2 * kBackward<T, bytes> * bytes * threads * height;
        // For the warps' sums.
        int room =
            ladder::device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 1024;
        // Their number does not change the result.
        int stages = std::max(2, std::min(kStages<T>, room / stage));
        STD_CUDA_CHECK(cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, stages * stage));
        kernel<<<blocks, dim3(threads, height), stages * stage, stream>>>(
            pg, px, pw, po, parts.template mutable_data_ptr<W>(), m.rows, row_vectors,
            groups, stages, W(eps));
        ladder::sum_parts_of_vectors<T, Vector<T, bytes>::size>(parts, grad_weight,
                                                                blocks);
      };
      if (with_fewest_threads<T, bytes, 32, 128, 256, 512>(row_vectors,
                                                           kBackward<T, bytes>, keep))
        return;
      int64_t strips = ceil_div(row_vectors, kStrip);
      ladder::Bands bands = ladder::bands_for(m.rows, strips, 1, kBands);
      Tensor scales = wide(m.rows, 1), parts = wide(bands.count, m.columns);
      W *ps = scales.template mutable_data_ptr<W>(),
        *pp = parts.template mutable_data_ptr<W>();
      rms_norm_backward_long_kernel<T, bytes>
          <<<m.rows, kLong, 0, stream>>>(pg, px, pw, po, ps, row_vectors, W(eps));
      weight_kernel<T, bytes><<<dim3(strips, bands.count), kStrip, 0, stream>>>(
          pg, px, ps, pp, m.rows, row_vectors, bands.rows);
      ladder::sum_parts_of_vectors<T, 1>(parts, grad_weight, bands.count);
    };
    ladder::with_widest<T>(m.columns, launch, pg, px, pw, po);
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
