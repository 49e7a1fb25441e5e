// rms_norm.cu: out = x * r * weight with r = 1 / sqrt(mean(x^2) + eps) over the last
// dimension, for float64, float32, float16, bfloat16. Its gradients:
// rms_norm_backward.cu.
//
// M rows of N elements of s bytes move 2sMN: a row stays in registers while its squares
// are added up.
//
//   rms_norm_kernel       8 to 512 threads keep a row, or a cluster of up to 16 blocks,
//                         up to 32 floats each, and its weights
//   rms_norm_long_kernel  longer rows: they are read again, from the L2 cache if they
//                         fit
//
// Memory bandwidth limits both. Halves are computed in float and rounded once. Rows of
// any number of columns are vectors of 16 bytes and single elements before and after
// them, as in softmax.cu.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "cluster.h"
#include "matrix.h"
#include "rms_norm.h"

using namespace ladder;

// Threads of a block of forward that keep a row, or a cluster's part of it, at most.
template <typename T>
constexpr int kForward = sizeof(T) == 2 ? 512 : 256;
// Of a block of a cluster, unless the largest cluster needs more: then several fit on
// an SM, and one computes while another loads.
constexpr int kClusterThreads = 256;
constexpr int kFewRows = 64;  // for which copies of the weights do not pay
// Blocks of forward that an SM should have room for: up to 64 registers a thread, 96 if
// a row is not of halves.
template <typename T, int warps>
constexpr int kResident = std::max<int>(
    1, (sizeof(T) == 2 ? 1024 : 640) / (warps > 1 ? kForward<T> : kRowThreads));

// -------------------------------------------------------------------------------------
// Kernels. x, out: rows x columns; weight: columns.

// lanes: of a warp that have one row; warps: that have one, at most; a block's, if more
// than 1. vectors: of a thread. blocks: of a cluster, which have an equal share of one
// row each; most: 1 without clusters. pitch: if not 0, `weight` has copies for rows
// that begin anywhere, so many elements apart: see shift_kernel.
template <typename T, bool aligned, int lanes, int warps, int vectors, int most>
__global__ void __launch_bounds__(warps > 1 ? kForward<T> : kRowThreads,
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
  if constexpr (most > 1) row = row.part(Cluster::rank(), blocks);
  // A row past the end is empty; its threads take part in the shuffles.
  if (y >= rows) row.count = row.before = row.after = 0;
  uint4 values[vectors], w[vectors];  // not widened: so both fit
  load_fragment<aligned>(values, x, row.first, rows * columns, row.count, threads,
                         T(0));
  load_fragment<aligned>(w, weight + shift * pitch, row.first - y * columns - shift,
                         columns, row.count, threads, T(0));
  W squares[1] = {0}, single[2] = {0, 0};
  T w_single[2] = {T(0), T(0)};
  row.each_single([&](int64_t i, int k) {
    single[k] = W(x[i]);
    w_single[k] = weight[i - y * columns];
  });
  struct alignas(2 * sizeof(W)) OfWarp {  // what a block can send
    W squares, unused;
  };
  __shared__ ClusterValues<OfWarp, most * warps> of_warps;
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
    of_warps.exchange({sum_of_lanes<kWarp>(squares[0]), 0}, blocks);
    squares[0] = 0;
    for (int i = threadIdx.x % kWarp; i < warps_of_row; i += kWarp)
      squares[0] += of_warps.at[i].squares;
    squares[0] = sum_of_lanes<kWarp>(squares[0]);
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
// Launcher

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  Matrix m = check_x_and_vector(x, weight, "weight");
  auto guard = on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (x.numel() == 0) return out;  // a grid of 0 blocks is an error
  cudaStream_t stream = current_stream(x);
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    using T = scalar_t;
    const T *px = x.const_data_ptr<T>(), *pw = weight.const_data_ptr<T>();
    T* po = out.mutable_data_ptr<T>();
    Tensor copies;
    auto launch = [&](auto aligned) {
      int64_t vectors = m.columns / Vector<T>::size;
      constexpr int most = kWidened<T>;  // of a thread
      int pitch = 0;
      auto in_a_warp = [&](auto lanes, auto each) {
        constexpr int height = rows_of_block(lanes);
        if (vectors > lanes * each) return false;
        rms_norm_kernel<T, aligned, lanes, 1, each, 1>
            <<<ceil_div(m.rows, height), dim3(lanes, height), 0, stream>>>(
                px, pw, po, m.rows, m.columns, 1, pitch, Wide<T>(eps));
        return true;
      };
      if constexpr (aligned && sizeof(T) < 8) {  // fewer kernels for doubles
        if (in_few_lanes(in_a_warp) || in_a_warp(Constant<16>(), Constant<2>())) return;
      }
      constexpr Constant<most> all;
      if (in_a_warp(Constant<8>(), all) || in_a_warp(Constant<kWarp>(), all)) return;
      constexpr int warps = kForward<T> / kWarp;
      auto [blocks, threads] =
          threads_of_row(vectors, most, kForward<T>, kClusterThreads, kBlocks);
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
          !launch_clusters<clusters, kBlocks, kForward<T>>(
              m.rows, {blocks, int(threads)}, stream, px,
              copy ? copies.const_data_ptr<T>() : pw, po, m.rows, int(m.columns),
              blocks, pitch, Wide<T>(eps))) {
        rms_norm_long_kernel<T, aligned>
            <<<m.rows, kLong, 0, stream>>>(px, pw, po, m.rows, m.columns, Wide<T>(eps));
      }
    };
    with_alignment<T>(m.columns, launch, px, pw, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.rms_norm(x, weight), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps=1e-06) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("rms_norm", TORCH_BOX(&rms_norm));
}
