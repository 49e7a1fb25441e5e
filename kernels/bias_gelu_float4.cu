// bias_gelu_float4.cu: out = gelu_tanh(x + bias), and its gradients, 16 bytes per
// access. The operator to use: float64, float32, float16, bfloat16; any number of
// columns, any address.
//
// x has M rows and N columns of s bytes. Forward moves 2sMN + sN bytes, backward 3sMN +
// 8PN, with P rows of float32 partial sums, like bias_gelu.cu. What limits it is memory
// bandwidth, which it uses better:
//
//   bias_gelu            16 bytes per access, so a quarter of the requests (halves: an
//                        eighth). Each thread has several rows, and requests all of
//                        them before it needs the first. An H200 needs about 48 KB in
//                        flight per SM to keep its memory busy; 2,048 threads with one
//                        16-byte load each have 32 KB in flight. The bias is read once
//                        for all rows of a thread.
//   bias_gelu_backward   the same for two inputs. The sums of a band of rows stay in
//                        float registers; a block adds them up once, at its end, and a
//                        second kernel adds up the blocks' sums
//
// An access of 16 bytes needs an address that is a multiple of 16. Every row begins at
// one if x does and the columns fill whole vectors. If they do not, as many rows as a
// vector has elements still do: 8 rows of 4,097 halves are 4,097 vectors. So the
// kernels take such a band of rows for one row, and the bias repeated for its bias.

#include <torch/csrc/stable/library.h>

#include <tuple>

#include "bias_gelu.h"
#include "vector.h"

using ladder::ceil_div;
using ladder::load;
using ladder::Vector;
using ladder::Wide;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block, at most
// region tuning
// Forward: threads per block, and rows per thread, whose 16-byte loads are in flight
// together. Best of 128, 256 and 512 threads and of 1, 2 and 4 rows, measured on an
// H200.
template <typename T>
constexpr int kRows = std::is_same_v<T, float>                         ? 1
                      : std::is_same_v<T, torch::headeronly::BFloat16> ? 4
                                                                       : 2;
template <typename T>
constexpr int kThreadsForward = std::is_same_v<T, float> ? 128 : 256;
// Small inputs have one or two rows per thread, so that all threads run at once: an
// H200 holds 270,336 threads.
constexpr int64_t kAtOnce = int64_t(1) << 18;
// Backward. With shorter bands the blocks end more evenly; longer bands leave fewer
// partial sums. With 2,112 blocks, 4 at a time per SM, there are 4 waves of blocks, and
// partial sums are 0.3% of the traffic (32768 x 8192, float16).
// Rows whose loads of grad and x are in flight together.
constexpr int kRowsBackward = 2;
constexpr int kStrip = 32;         // vectors side by side in a block
constexpr int64_t kBlocks = 2112;  // wanted: 16 for each of an H200's 132 SMs
// endregion

// -------------------------------------------------------------------------------------
// Kernels. x, grad, out, grad_x: n elements as `rows` rows of row_vectors vectors, the
// last of which may be short if not aligned; bias: columns. A block is blockDim.x
// vectors wide and blockDim.y rows high.

// region any_columns
// Vector v of the bias, repeated without end if not aligned.
template <bool aligned, typename T>
__device__ Vector<T> load_bias(const T* bias, int64_t v, int64_t columns) {
  constexpr int size = Vector<T>::size;
  if constexpr (aligned) return Vector<T>::load(bias, v);
  int64_t column = v * size;
  while (column >= columns) column -= columns;  // a few times: faster than to divide
  if (column + size <= columns) return ladder::load_anywhere(bias, column, columns);
  Vector<T> b;
  for (int j = 0; j < size; ++j) b.at[j] = bias[(column + j) % columns];
  return b;
}

// Writes vector v of the n elements of out. The last may be short.
template <bool aligned, typename T>
__device__ void store(const Vector<T>& vector, T* out, int64_t v, int64_t n) {
  constexpr int size = Vector<T>::size;
  if (aligned || (v + 1) * size <= n) return vector.store(out, v);
  for (int j = 0; j < size; ++j) {
    if (v * size + j < n) out[v * size + j] = vector.at[j];
  }
}
// endregion

// Block k has strip k % strips of blockDim.y * each rows, the first of which is k /
// strips * blockDim.y * each. Its threads take every blockDim.y-th row.
template <typename T, bool aligned, int each>
__global__ void __launch_bounds__(kThreads)
    bias_gelu_kernel(const T* __restrict__ x, const T* __restrict__ bias,
                     T* __restrict__ out, int64_t rows, int64_t row_vectors,
                     int64_t columns, int64_t n, unsigned strips) {
  using V = Vector<T>;
  int64_t v = int64_t(blockIdx.x % strips) * blockDim.x + threadIdx.x;
  int64_t row = int64_t(blockIdx.x / strips) * blockDim.y * each + threadIdx.y;
  if (v >= row_vectors) return;
  V b = load_bias<aligned>(bias, v, columns), values[each];
  // Only the last row may end before v.
  auto has = [&](int k) {
    return row + k * blockDim.y < rows &&
           (aligned || ((row + k * blockDim.y) * row_vectors + v) * V::size < n);
  };
#pragma unroll
  for (int k = 0; k < each; ++k) {  // all loads, before any is used
    if (has(k))
      values[k] = load<aligned>(x, 0, (row + k * blockDim.y) * row_vectors + v, n);
  }
#pragma unroll
  for (int k = 0; k < each; ++k) {
    if (has(k)) {
#pragma unroll
      for (int j = 0; j < V::size; ++j)
        values[k].at[j] =
            T(ladder::gelu_tanh(Wide<T>(values[k].at[j]) + Wide<T>(b.at[j])));
      store<aligned>(values[k], out, (row + k * blockDim.y) * row_vectors + v, n);
    }
  }
}

// Block (bx, by) owns strip bx of rows by * band to (by + 1) * band - 1, and writes
// their sums to row by of parts.
template <typename T, bool aligned, int each>
__global__ void __launch_bounds__(kThreads)
    bias_gelu_backward_kernel(const T* __restrict__ grad, const T* __restrict__ x,
                              const T* __restrict__ bias, T* __restrict__ grad_x,
                              Wide<T>* __restrict__ parts, int64_t rows,
                              int64_t row_vectors, int64_t row_columns, int64_t columns,
                              int64_t n, int64_t band) {
  using V = Vector<T>;
  __shared__ Wide<T> shared[V::size][kThreads + 32 / V::size];
  int64_t v = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t first = int64_t(blockIdx.y) * band,
          end = first + band < rows ? first + band : rows;
  Wide<T> sums[V::size] = {};
  if (v < row_vectors) {
    V b = load_bias<aligned>(bias, v, columns);
    for (int64_t row = first + threadIdx.y; row < end; row += each * blockDim.y) {
      V g[each], values[each];
      auto has = [&](int k) {
        return row + k * blockDim.y < end &&
               (aligned || ((row + k * blockDim.y) * row_vectors + v) * V::size < n);
      };
#pragma unroll
      for (int k = 0; k < each; ++k) {
        int64_t at = (row + k * blockDim.y) * row_vectors + v;
        if (has(k)) {
          g[k] = load<aligned>(grad, 0, at, n);
          values[k] = load<aligned>(x, 0, at, n);
        }
      }
#pragma unroll
      for (int k = 0; k < each; ++k) {
        if (has(k)) {
#pragma unroll
          for (int j = 0; j < V::size; ++j) {
            Wide<T> slope =
                ladder::gelu_tanh_slope(Wide<T>(values[k].at[j]) + Wide<T>(b.at[j]));
            Wide<T> result = Wide<T>(g[k].at[j]) * slope;
            sums[j] += result;  // before it is rounded
            g[k].at[j] = T(result);
          }
          store<aligned>(g[k], grad_x, (row + k * blockDim.y) * row_vectors + v, n);
        }
      }
    }
  }
  int thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int j = 0; j < V::size; ++j) shared[j][thread] = sums[j];
  __syncthreads();  // all partial sums are written
  // Column c of the strip is element c % size of the vectors of lane c / size.
  // Neighbouring threads take neighbouring columns, so that a warp writes whole
  // sectors; thanks to the padding it reads from 32 different banks.
  for (int c = thread; c < blockDim.x * V::size; c += kThreads) {
    Wide<T> sum = 0;
    for (int y = 0; y < blockDim.y; ++y)
      sum += shared[c % V::size][y * blockDim.x + c / V::size];
    int64_t column = int64_t(blockIdx.x) * blockDim.x * V::size + c;
    if (column < row_columns) parts[blockIdx.y * row_columns + column] = sum;
  }
}

// -------------------------------------------------------------------------------------
// Launchers

// A block of `threads`, up to `widest` vectors wide. The width is a power of two. It is
// smaller if a row is narrower, or, down to a warp, if the last strip would leave more
// than an eighth of the threads idle.
dim3 block_for(int64_t row_vectors, int threads, int widest) {
  int64_t x = widest;
  while (x > 32 && ceil_div(row_vectors, x) * x > row_vectors + row_vectors / 8) x /= 2;
  while (x / 2 >= row_vectors) x /= 2;
  return dim3(x, threads / x);
}

// The rows that the kernels take, in vectors. If not aligned, each is of several of
// m's.
template <typename T, bool aligned>
ladder::Matrix in_vectors(ladder::Matrix m) {
  constexpr int size = Vector<T>::size;
  if (aligned) return {m.rows, m.columns / size};
  if (0 < m.rows && m.rows < size) return {1, ceil_div(m.rows * m.columns, size)};
  return {ceil_div(m.rows, size), m.columns};
}

template <typename T, bool aligned, int each>
void launch(const T* x, const T* bias, T* out, ladder::Matrix m, cudaStream_t stream) {
  auto [rows, row_vectors] = in_vectors<T, aligned>(m);
  dim3 block = block_for(row_vectors, kThreadsForward<T>, kThreadsForward<T>);
  int64_t strips = ceil_div(row_vectors, block.x),
          blocks = strips * ceil_div(rows, block.y * each);
  bias_gelu_kernel<T, aligned, each><<<blocks, block, 0, stream>>>(
      x, bias, out, rows, row_vectors, m.columns, m.rows * m.columns, strips);
}

Tensor bias_gelu(const Tensor& x, const Tensor& bias) {
  ladder::Matrix m = ladder::check_x_and_bias(x, bias);
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (x.numel() == 0) return out;  // a grid of 0 blocks is an error
  cudaStream_t stream = ladder::current_stream(x);
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    using T = scalar_t;
    const T *px = x.const_data_ptr<T>(), *pb = bias.const_data_ptr<T>();
    T* po = out.mutable_data_ptr<T>();
    ladder::with_alignment<T>(
        m.columns,
        [&](auto aligned) {
          int64_t vectors = x.numel() / Vector<T>::size;
          if (vectors <= kAtOnce) {
            launch<T, aligned, 1>(px, pb, po, m, stream);
          } else if (vectors <= 2 * kAtOnce) {
            launch<T, aligned, 2>(px, pb, po, m, stream);
          } else {
            launch<T, aligned, kRows<T>>(px, pb, po, m, stream);
          }
        },
        px, pb, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

template <typename T, bool aligned>
void launch_backward(const T* grad, const T* x, const T* bias, T* grad_x,
                     const Tensor& like, Tensor& grad_bias, ladder::Matrix m,
                     cudaStream_t stream) {
  auto [rows, row_vectors] = in_vectors<T, aligned>(m);
  dim3 block = block_for(row_vectors, kThreads, kStrip);
  int64_t strips = ceil_div(row_vectors, block.x);
  ladder::Bands bands =
      ladder::bands_for(rows, strips, block.y * kRowsBackward, kBlocks);
  // A row of the kernel's is as many rows of the partial sums as it is of m's.
  int64_t n = m.rows * m.columns,
          row_columns = std::min(n, row_vectors * Vector<T>::size);
  int64_t count = bands.count * (row_columns / m.columns);
  Tensor parts = torch::stable::new_empty(like, {count, m.columns},
                                          ladder::wide_dtype(like.scalar_type()));
  if (count > 0) {
    bias_gelu_backward_kernel<T, aligned, kRowsBackward>
        <<<dim3(strips, bands.count), block, 0, stream>>>(
            grad, x, bias, grad_x, parts.mutable_data_ptr<Wide<T>>(), rows, row_vectors,
            row_columns, m.columns, n, bands.rows);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
  }
  ladder::sum_parts<T>(parts, grad_bias, count);
}

std::tuple<Tensor, Tensor> bias_gelu_backward(const Tensor& grad, const Tensor& x,
                                              const Tensor& bias) {
  ladder::Matrix m = ladder::check_backward(grad, x, bias);
  auto guard = ladder::on_device_of(x);
  Tensor grad_x = torch::stable::empty_like(x),
         grad_bias = torch::stable::empty_like(bias);
  if (m.columns == 0) return {grad_x, grad_bias};
  cudaStream_t stream = ladder::current_stream(x);
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    using T = scalar_t;
    const T *pg = grad.const_data_ptr<T>(), *px = x.const_data_ptr<T>(),
            *pb = bias.const_data_ptr<T>();
    T* po = grad_x.mutable_data_ptr<T>();
    ladder::with_alignment<T>(
        m.columns,
        [&](auto aligned) {
          launch_backward<T, aligned>(pg, px, pb, po, x, grad_bias, m, stream);
        },
        pg, px, pb, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_x, grad_bias};
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.bias_gelu(x, bias), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("bias_gelu(Tensor x, Tensor bias) -> Tensor");
  m.def("bias_gelu_backward(Tensor grad, Tensor x, Tensor bias) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("bias_gelu", TORCH_BOX(&bias_gelu));
  m.impl("bias_gelu_backward", TORCH_BOX(&bias_gelu_backward));
}
