// rms_norm.cu: out = x * r * weight with r = 1 / sqrt(mean(x^2) + eps) over the last dimension, and its backward, for
// float64, float32, float16, bfloat16.
//
// M rows of N elements of s bytes. Forward moves 2sMN: a row stays in registers while its squares are added up.
// Backward reads grad and x, and computes r again, which costs less than reading it would:
//
//   grad_x      = r * grad * weight - x * r^3 * mean(grad * weight * x)    for each row
//   grad_weight = sum over the rows of grad * x * r
//
// One kernel does both and moves 3sMN: each group of threads goes down its own band of rows and keeps the sums of its
// columns in registers. They end as a row of `parts`, which a small second kernel adds up: P such rows take 8PN bytes
// more in float32. The order of additions is always the same, and does not depend on the GPU.
//
//   rms_norm_kernel                32 to 1,024 threads keep a row, up to 32 floats each
//   rms_norm_backward_kernel       32 to 512 threads keep a row of x and one of grad, up to 16 floats each, while the
//                                  next rows are copied to shared memory
//   *_long_kernel, weight_kernel   longer rows: they are read again, from the L2 cache if they fit
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
using ladder::Part;
using ladder::sums_over_row;
using ladder::Vector;
using ladder::Wide;
using torch::stable::Tensor;

constexpr int kLong = 1024;          // threads that share a long row
constexpr int kThreads = 132 * 512;  // that go down bands of rows, on an H200 all at a time
constexpr int kStages = 3;           // rows of x and of grad in flight: up to 192 KB per SM
// Vectors of a row that a thread has in backward: 16 floats.
template <typename T, int bytes>
constexpr int kBackward = bytes == 16 ? std::min(4, 16 / Vector<T>::size) : 16;
constexpr int kStrip = 256;   // vectors side by side in a block of weight_kernel
constexpr int kBands = 1024;  // blocks of weight_kernel, about

__device__ inline float rms_scale(float sum_of_squares, float count, float eps) {
  return rsqrtf(sum_of_squares / count + eps);
}
__device__ inline double rms_scale(double sum_of_squares, double count, double eps) {
  return 1 / sqrt(sum_of_squares / count + eps);
}

// ---------------------------------------------------------------------------------------------------------------------
// Forward. x, out: rows of row_vectors vectors of `bytes` bytes; weight: one row.

template <typename T, int bytes, int threads>
__global__ void __launch_bounds__(threads* ladder::rows_of_block(threads))
    rms_norm_kernel(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ out, int64_t rows,
                    int row_vectors, Wide<T> eps) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  int count = row < rows ? row_vectors : 0;  // a row past the end is empty; its threads take part in the shuffles
  Part<T, bytes, threads> part;
  part.load(x, row * row_vectors, count, T(0));
  W squares[1] = {0};
  part.each(count, [&](W& value) { squares[0] += value * value; });
  sums_over_row<threads>(squares);
  W r = rms_scale(squares[0], W(row_vectors) * V::size, eps);
#pragma unroll
  for (int k = 0; k < part.vectors; ++k) {
    int v = k * threads + threadIdx.x;
    if (v < count) {
      V w = V::load(weight, v);
      for (int j = 0; j < V::size; ++j) part.at[k][j] *= r * W(w.at[j]);
    }
  }
  part.store(out, row * row_vectors, count);
}

template <typename T, int bytes>
__global__ void __launch_bounds__(kLong) rms_norm_long_kernel(const T* __restrict__ x, const T* __restrict__ weight,
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
  W r = rms_scale(squares[0], W(row_vectors) * V::size, eps);
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V value = V::load(x, first + v), w = V::load(weight, v);
    for (int j = 0; j < V::size; ++j) value.at[j] = T(W(value.at[j]) * (r * W(w.at[j])));
    value.store(out, first + v);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Backward. Group g of `threads` threads has rows g * band to (g + 1) * band - 1, and writes row g of parts.

// What backward needs of a row: the two sums, from those of the row's threads.
template <typename W>
struct Slopes {
  W r, c;  // grad_x = r * grad * weight - c * x
  __device__ Slopes(W squares, W products, W count, W eps) {
    r = rms_scale(squares, count, eps);
    c = r * r * r * (products / count);
  }
};

// While a row is computed, the next ones are in flight to shared memory. A thread copies the vectors that it will
// read, so it waits for its own copies only.
template <typename T, int bytes, int threads>
__global__ void __launch_bounds__(threads* ladder::rows_of_block(threads),
                                  512 / (threads * ladder::rows_of_block(threads)))
    rms_norm_backward_kernel(const T* __restrict__ grad, const T* __restrict__ x, const T* __restrict__ weight,
                             T* __restrict__ grad_x, Wide<T>* __restrict__ parts, int64_t rows, int row_vectors,
                             int64_t band, Wide<T> eps) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  constexpr int vectors = kBackward<T, bytes>, block = threads * ladder::rows_of_block(threads);
  extern __shared__ __align__(16) char memory[];
  auto stages = reinterpret_cast<V(*)[2][vectors][block]>(memory);  // of grad, and of x
  int thread = threadIdx.y * threads + threadIdx.x;
  int64_t group = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  int64_t row = group * band, end = row + band < rows ? row + band : rows;
  V w[vectors];
  W sums[vectors][V::size] = {};
  ladder::AsyncCopies copies;
  auto request = [&](int64_t of_row, int stage) {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      int v = k * threads + threadIdx.x;
      if (of_row < end && v < row_vectors) {
        ladder::copy_vector(copies, stages[stage][0][k][thread], grad, of_row * row_vectors + v);
        ladder::copy_vector(copies, stages[stage][1][k][thread], x, of_row * row_vectors + v);
      }
    }
    copies.commit();
  };
#pragma unroll
  for (int k = 0; k < vectors; ++k) {  // zeros where no copy writes
    int v = k * threads + threadIdx.x;
    w[k] = ladder::filled<V>(T(0));
    if (v < row_vectors) w[k] = V::load(weight, v);
    for (int stage = 0; stage < kStages; ++stage) {
      for (int which = 0; which < 2; ++which) stages[stage][which][k][thread] = ladder::filled<V>(T(0));
    }
  }
  for (int stage = 0; stage < kStages; ++stage) request(row + stage, stage);
  for (int64_t i = 0; i < band; ++i, ++row) {  // all groups of a block take as many turns, for the shuffles
    int stage = i % kStages;
    copies.template wait<kStages - 1>();
    W g[vectors][V::size], of_x[vectors][V::size], both[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      V of_grad = stages[stage][0][k][thread], value = stages[stage][1][k][thread];  // zeros past the row's end
#pragma unroll
      for (int j = 0; j < V::size; ++j) {
        g[k][j] = W(of_grad.at[j]);
        of_x[k][j] = W(value.at[j]);
        both[0] += of_x[k][j] * of_x[k][j];
        both[1] += g[k][j] * W(w[k].at[j]) * of_x[k][j];
      }
    }
    request(row + kStages, stage);
    sums_over_row<threads>(both, i % 2);
    Slopes<W> slopes(both[0], both[1], W(row_vectors) * V::size, eps);
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      int v = k * threads + threadIdx.x;
      V result;
#pragma unroll
      for (int j = 0; j < V::size; ++j) {
        W scaled = slopes.r * g[k][j];
        result.at[j] = T(scaled * W(w[k].at[j]) - slopes.c * of_x[k][j]);
        if (row < end) sums[k][j] += scaled * of_x[k][j];
      }
      if (row < end && v < row_vectors) result.store(grad_x, row * row_vectors + v);
    }
  }
  if (group * band >= rows) return;
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    int v = k * threads + threadIdx.x;
    if (v < row_vectors) {
      for (int j = 0; j < V::size; ++j) parts[(group * row_vectors + v) * V::size + j] = sums[k][j];
    }
  }
}

// A block for each row. Leaves r in scales, for weight_kernel.
template <typename T, int bytes>
__global__ void __launch_bounds__(kLong)
    rms_norm_backward_long_kernel(const T* __restrict__ grad, const T* __restrict__ x, const T* __restrict__ weight,
                                  T* __restrict__ grad_x, Wide<T>* __restrict__ scales, int64_t row_vectors,
                                  Wide<T> eps) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t first = int64_t(blockIdx.x) * row_vectors;
  W both[2] = {0, 0};
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V g = V::load(grad, first + v), value = V::load(x, first + v), w = V::load(weight, v);
    for (int j = 0; j < V::size; ++j) {
      both[0] += W(value.at[j]) * W(value.at[j]);
      both[1] += W(g.at[j]) * W(w.at[j]) * W(value.at[j]);
    }
  }
  sums_over_row<kLong>(both);
  Slopes<W> slopes(both[0], both[1], W(row_vectors) * V::size, eps);
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V g = V::load(grad, first + v), value = V::load(x, first + v), w = V::load(weight, v);
    for (int j = 0; j < V::size; ++j) value.at[j] = T(slopes.r * W(g.at[j]) * W(w.at[j]) - slopes.c * W(value.at[j]));
    value.store(grad_x, first + v);
  }
  if (threadIdx.x == 0) scales[blockIdx.x] = slopes.r;
}

// A block goes down a band of rows in a strip of kStrip vectors: row blockIdx.y of parts.
template <typename T, int bytes>
__global__ void __launch_bounds__(kStrip)
    weight_kernel(const T* __restrict__ grad, const T* __restrict__ x, const Wide<T>* __restrict__ scales,
                  Wide<T>* __restrict__ parts, int64_t rows, int64_t row_vectors, int64_t band) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t v = int64_t(blockIdx.x) * kStrip + threadIdx.x, end = (blockIdx.y + 1) * band;
  if (v >= row_vectors) return;
  W sums[V::size] = {};
  for (int64_t row = blockIdx.y * band; row < end && row < rows; ++row) {
    V g = V::load(grad, row * row_vectors + v), value = V::load(x, row * row_vectors + v);
    W r = scales[row];
    for (int j = 0; j < V::size; ++j) sums[j] += r * W(g.at[j]) * W(value.at[j]);
  }
  for (int j = 0; j < V::size; ++j) parts[(blockIdx.y * row_vectors + v) * V::size + j] = sums[j];
}

// ---------------------------------------------------------------------------------------------------------------------
// Launchers

// Calls go(threads as a Constant) with the fewest of `threads` that can keep a row in registers, `vectors` each. Returns
// false if none can.
template <int... threads, typename Go>
bool with_fewest_threads(int64_t row_vectors, int vectors, Go go) {
  auto attempt = [&](auto per_row) {
    if (row_vectors > vectors * per_row) return false;
    go(per_row);
    return true;
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
        rms_norm_kernel<T, bytes, threads><<<ceil_div(m.rows, height), dim3(threads, height), 0, stream>>>(
            px, pw, po, m.rows, row_vectors, Wide<T>(eps));
      };
      if (!with_fewest_threads<32, 128, 256, 512, 1024>(row_vectors, Part<T, bytes, 1>::vectors, keep))
        rms_norm_long_kernel<T, bytes><<<m.rows, kLong, 0, stream>>>(px, pw, po, row_vectors, Wide<T>(eps));
    };
    ladder::with_widest<T>(m.columns, launch, px, pw, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, double eps) {
  ladder::Matrix m = ladder::check_x_and_vector(x, weight, "weight");
  ladder::check_input(grad, "grad", x.scalar_type());
  ladder::check_same(grad, "grad", x, "x");
  auto guard = ladder::on_device_of(x);
  Tensor grad_x = torch::stable::empty_like(x), grad_weight = torch::stable::empty_like(weight);
  if (m.columns == 0) return {grad_x, grad_weight};
  if (m.rows == 0) return {grad_x, torch::stable::zero_(grad_weight)};
  cudaStream_t stream = ladder::current_stream(x);
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    using T = scalar_t;
    using W = Wide<T>;
    const T *pg = grad.const_data_ptr<T>(), *px = x.const_data_ptr<T>(), *pw = weight.const_data_ptr<T>();
    T* po = grad_x.mutable_data_ptr<T>();
    auto wide = [&](int64_t rows, int64_t columns) {
      return torch::stable::new_empty(x, {rows, columns}, ladder::wide_dtype(x.scalar_type()));
    };
    auto launch = [&](auto bytes) {
      int64_t row_vectors = m.columns / Vector<T, bytes>::size;
      auto keep = [&](auto threads) {
        constexpr int height = ladder::rows_of_block(threads);
        ladder::Bands bands = ladder::bands_for(m.rows, 1, 1, kThreads / threads);
        Tensor parts = wide(bands.count, m.columns);
        auto kernel = rms_norm_backward_kernel<T, bytes, threads>;
        constexpr int shared = kStages * 2 * kBackward<T, bytes> * bytes * threads * height;
        STD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
        kernel<<<ceil_div(bands.count, height), dim3(threads, height), shared, stream>>>(
            pg, px, pw, po, parts.template mutable_data_ptr<W>(), m.rows, row_vectors, bands.rows, W(eps));
        ladder::sum_parts<T>(parts, grad_weight, bands.count);
      };
      if (with_fewest_threads<32, 128, 256, 512>(row_vectors, kBackward<T, bytes>, keep)) return;
      int64_t strips = ceil_div(row_vectors, kStrip);
      ladder::Bands bands = ladder::bands_for(m.rows, strips, 1, kBands);
      Tensor scales = wide(m.rows, 1), parts = wide(bands.count, m.columns);
      W *ps = scales.template mutable_data_ptr<W>(), *pp = parts.template mutable_data_ptr<W>();
      rms_norm_backward_long_kernel<T, bytes><<<m.rows, kLong, 0, stream>>>(pg, px, pw, po, ps, row_vectors, W(eps));
      weight_kernel<T, bytes>
          <<<dim3(strips, bands.count), kStrip, 0, stream>>>(pg, px, ps, pp, m.rows, row_vectors, bands.rows);
      ladder::sum_parts<T>(parts, grad_weight, bands.count);
    };
    ladder::with_widest<T>(m.columns, launch, pg, px, pw, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_x, grad_weight};
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.rms_norm(x, weight), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps=1e-06) -> Tensor");
  m.def("rms_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps=1e-06) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("rms_norm", TORCH_BOX(&rms_norm));
  m.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
}
