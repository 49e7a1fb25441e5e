// rms_norm_backward.cu: the gradients of rms_norm.cu's result.
//
// M rows of N elements of s bytes. r, which rms_norm.cu has, is computed again: that
// costs less than reading it would.
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
//   rms_norm_backward_kernel  8 to 512 threads, or a cluster of up to 16 blocks, have a
//                             row of x and one of grad in shared memory, up to 16
//                             floats each, or 32 halves, while the next rows are copied
//                             there (rms_norm_backward.h)
//   rms_norm_backward_long_kernel, weight_kernel   longer rows: they are read again,
//                             from the L2 cache if they fit
//
// Memory bandwidth limits all of them. The blocks of a cluster wait for each other in
// each row; that and 120 of 132 SMs with clusters of 8, 112 with those of 16, limit
// rows of 65,536 columns and more.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <tuple>

#include "column_sums.h"
#include "matrix.h"
#include "rms_norm_backward.h"

using namespace ladder;

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
constexpr int kStrip = 256;   // vectors side by side in a block of weight_kernel
constexpr int kBands = 1024;  // blocks of weight_kernel, about

// -------------------------------------------------------------------------------------
// Long rows

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
// Launcher

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

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& x,
                                             const Tensor& weight, double eps) {
  Matrix m = check_x_and_vector(x, weight, "weight");
  check_input(grad, "grad", x.scalar_type());
  check_same(grad, "grad", x, "x");
  auto guard = on_device_of(x);
  Tensor grad_x = torch::stable::empty_like(x),
         grad_weight = torch::stable::empty_like(weight);
  if (m.columns == 0) return {grad_x, grad_weight};
  if (m.rows == 0) return {grad_x, torch::stable::zero_(grad_weight)};
  cudaStream_t stream = current_stream(x);
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    using T = scalar_t;
    using W = Wide<T>;
    const T *pg = grad.const_data_ptr<T>(), *px = x.const_data_ptr<T>(),
            *pw = weight.const_data_ptr<T>();
    T* po = grad_x.mutable_data_ptr<T>();
    auto wide = [&](int64_t rows, int64_t columns) {
      return torch::stable::new_empty(x, {rows, columns}, wide_dtype(x.scalar_type()));
    };
    auto launch = [&](auto aligned) {
      constexpr int size = Vector<T>::size;
      int64_t row_vectors = m.columns / size;
      // Calls go with how many stages of this size have room beside the sums of warps,
      // and their bytes. Their number does not change the result. Returns false if two
      // have none.
      auto with_stages = [&](int stage, int sums, auto go) {
        int room = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - sums;
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
          sum_parts_of_vectors<T, aligned ? size : 1>(parts, grad_weight, blocks);
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
            threads_of_row(row_vectors, vectors, most, most, kBlocks);
        if (threads > most) return false;
        int64_t clusters =
            std::min<int64_t>(m.rows, clusters_of(blocks, m.rows, aligned));
        if (!aligned) clusters = std::max<int64_t>(1, clusters / size) * size;
        Tensor parts = wide(clusters, m.columns);
        constexpr auto kernel =
            rms_norm_backward_kernel<T, aligned, most, vectors, kBlocks>;
        auto go = [&, b = blocks, t = int(threads)](int stages, int bytes) {
          return launch_clusters<kernel, kBlocks, most>(
              clusters, {b, t, bytes, bytes}, stream, pg, px, pw, po,
              parts.template mutable_data_ptr<W>(), m.rows, int(m.columns), b, stages,
              W(eps));
        };
        if (!with_stages(2 * vectors * 16 * most, kSumBytes, go)) return false;
        sum_parts_of_vectors<T, aligned ? size : 1>(parts, grad_weight, clusters);
        return true;
      };
      if (kept) return;
      if (row_vectors <= most * vectors
              ? keep_with(Constant<most>(), Constant<vectors>())
              : keep_in_cluster())
        return;
      int64_t strips = ceil_div(ceil_div(m.columns, size), kStrip);
      Bands bands = bands_for(m.rows, strips, 1, kBands);
      Tensor scales = wide(m.rows, 1), parts = wide(bands.count, m.columns);
      W *ps = scales.template mutable_data_ptr<W>(),
        *pp = parts.template mutable_data_ptr<W>();
      rms_norm_backward_long_kernel<T, aligned>
          <<<m.rows, kLong, 0, stream>>>(pg, px, pw, po, ps, m.rows, m.columns, W(eps));
      weight_kernel<T, aligned><<<dim3(strips, bands.count), kStrip, 0, stream>>>(
          pg, px, ps, pp, m.rows, m.columns, bands.rows);
      sum_parts_of_vectors<T, 1>(parts, grad_weight, bands.count);
    };
    with_alignment<T>(m.columns, launch, pg, px, pw, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_x, grad_weight};
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.rms_norm_backward(grad, x, weight), for
// CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "rms_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps=1e-06) -> "
      "(Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
}
