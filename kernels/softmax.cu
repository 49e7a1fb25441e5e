// softmax.cu: out = exp(x - max) / sum(exp(x - max)) over the last dimension, for float64, float32, float16, bfloat16.
//
// The sum of a row needs its maximum, and the outputs need the sum. Three passes over memory would move 4sMN bytes, for
// M rows of N elements of s bytes. A row that stays in registers between the passes is read once:
//
//   softmax_kernel        a warp, 256 or 1,024 threads keep a row in registers, up to 32 floats each: 2sMN
//   softmax_long_kernel   longer rows. One pass finds maximum and sum together and rescales the sum whenever the
//                         maximum grows ("online"); a second pass writes: 3sMN
//
// Memory bandwidth limits both. Threads exchange their maxima and sums by warp shuffles, warps through shared memory.
// The order of additions is always the same. Halves are computed in float and rounded once. For them exp would take
// more time than memory does, so they use the fast one; its error of at most 2^-17 is lost in the rounding.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

#include "floating.h"
#include "vector.h"

using ladder::ceil_div;
using ladder::Vector;
using ladder::Wide;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kWarp = 32;
constexpr unsigned kAll = 0xffffffffu;  // every lane of a warp
constexpr int kRowsOfWarps = 8;         // rows of a block, if a warp has a row
template <typename T>
constexpr int kVectors = 8 * sizeof(T) / sizeof(Wide<T>);  // of 16 bytes that a thread keeps: 32 registers once widened

// e to the power of x, for results of type T.
template <typename T>
__device__ Wide<T> exponential(Wide<T> x) {
  if constexpr (sizeof(T) == 2) {
    return __expf(x);
  } else {
    return exp(x);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Between threads

struct Sum {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    return a + b;
  }
};
struct Max {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    return fmax(a, b);  // drops a NaN, which the sum brings back
  }
};

// Combines the values of a row's `threads` threads and returns the result to all of them. Each lane adds the same 32
// values in the same tree, and each thread adds the same warps in the same order.
template <int threads, typename W, typename Combine>
__device__ W over_row(W value, Combine combine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(kAll, value, offset));
  if constexpr (threads > kWarp) {
    __shared__ W of_warp[threads / kWarp];
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();  // every warp's value is written before it is read
    value = of_warp[0];
    for (int warp = 1; warp < threads / kWarp; ++warp) value = combine(value, of_warp[warp]);
    __syncthreads();  // and has been read before the next call writes
  }
  return value;
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernels. x, out: rows x row_vectors vectors of `bytes` bytes. A row belongs to the threads with one threadIdx.y.

template <typename T, int bytes, int threads>
__global__ void __launch_bounds__(threads == kWarp ? kWarp * kRowsOfWarps : threads)
    softmax_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t rows, int row_vectors) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  constexpr int vectors = kVectors<T>;
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;  // a whole warp: if several warps share a row, the block has one row
  // Beyond the row's end the values are -infinity, whose exponential adds nothing. All loads start before any is used.
  V loaded[vectors];
  W values[vectors][V::size], largest = -INFINITY, sum = 0;
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    int v = k * threads + threadIdx.x;
    if (v < row_vectors) loaded[k] = V::load(x, row * row_vectors + v);
  }
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    for (int j = 0; j < V::size; ++j) {
      values[k][j] = k * threads + threadIdx.x < row_vectors ? W(loaded[k].at[j]) : -INFINITY;
      largest = fmax(largest, values[k][j]);
    }
  }
  largest = over_row<threads>(largest, Max());
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    for (int j = 0; j < V::size; ++j) sum += values[k][j] = exponential<T>(values[k][j] - largest);
  }
  sum = over_row<threads>(sum, Sum());
  W scale = 1 / sum;
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    int v = k * threads + threadIdx.x;
    if (v < row_vectors) {
      V result;
      for (int j = 0; j < V::size; ++j) result.at[j] = T(values[k][j] * scale);
      result.store(out, row * row_vectors + v);
    }
  }
}

template <typename T, int bytes, int threads>
__global__ void __launch_bounds__(threads)
    softmax_long_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t row_vectors) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t first = int64_t(blockIdx.x) * row_vectors;
  W largest = -INFINITY, sum = 0;  // of the elements that this thread has seen
  for (int64_t v = threadIdx.x; v < row_vectors; v += threads) {
    V value = V::load(x, first + v);
    W before = largest;
    for (int j = 0; j < V::size; ++j) largest = fmax(largest, W(value.at[j]));
    if (largest > before) sum *= exponential<T>(before - largest);
    W shift = largest == -INFINITY ? 0 : largest;  // -inf - (-inf) would be NaN, and a later element may be finite
    for (int j = 0; j < V::size; ++j) sum += exponential<T>(W(value.at[j]) - shift);
  }
  W mine = largest;
  largest = over_row<threads>(largest, Max());
  sum = over_row<threads>(sum * exponential<T>(mine - largest), Sum());  // a row of -inf gives NaN, as it should
  W scale = 1 / sum;
  for (int64_t v = threadIdx.x; v < row_vectors; v += threads) {
    V value = V::load(x, first + v);
    for (int j = 0; j < V::size; ++j) value.at[j] = T(exponential<T>(W(value.at[j]) - largest) * scale);
    value.store(out, first + v);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

// Uses the fewest threads per row that can keep it in registers.
template <typename T, int bytes>
void launch(const T* x, T* out, int64_t rows, int64_t columns, cudaStream_t stream) {
  int64_t row_vectors = columns / Vector<T, bytes>::size;
  if (row_vectors <= kWarp * kVectors<T>) {
    softmax_kernel<T, bytes, kWarp>
        <<<ceil_div(rows, kRowsOfWarps), dim3(kWarp, kRowsOfWarps), 0, stream>>>(x, out, rows, row_vectors);
  } else if (row_vectors <= 256 * kVectors<T>) {
    softmax_kernel<T, bytes, 256><<<rows, 256, 0, stream>>>(x, out, rows, row_vectors);
  } else if (row_vectors <= 1024 * kVectors<T>) {
    softmax_kernel<T, bytes, 1024><<<rows, 1024, 0, stream>>>(x, out, rows, row_vectors);
  } else {
    softmax_long_kernel<T, bytes, 1024><<<rows, 1024, 0, stream>>>(x, out, row_vectors);
  }
}

template <typename T>
void launch_widest(const Tensor& x, Tensor& out, int64_t rows, int64_t columns) {
  const T* px = x.const_data_ptr<T>();
  T* po = out.mutable_data_ptr<T>();
  cudaStream_t stream = ladder::current_stream(x);
  if (columns % Vector<T>::size == 0 && ladder::all_aligned_to(16, px, po)) {
    launch<T, 16>(px, po, rows, columns, stream);
  } else {
    launch<T, sizeof(T)>(px, po, rows, columns, stream);
  }
}

Tensor softmax(const Tensor& x) {
  ScalarType dtype = ladder::check_floating_input(x, "x");
  STD_TORCH_CHECK(x.dim() > 0, "x must have a dimension to sum over, but is a scalar; pass x.view(1)");
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (x.numel() == 0) return out;  // a grid of 0 blocks is an error
  int64_t columns = x.size(x.dim() - 1), rows = x.numel() / columns;
  FOR_FLOATING_DTYPE(dtype, [&] { launch_widest<scalar_t>(x, out, rows, columns); });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.softmax(x), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("softmax(Tensor x) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("softmax", TORCH_BOX(&softmax)); }
