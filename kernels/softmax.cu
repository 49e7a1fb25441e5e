// softmax.cu: out = exp(x - max) / sum(exp(x - max)) over the last dimension, for
// float64, float32, float16, bfloat16.
//
// The sum of a row needs its maximum, and the outputs need the sum. Three passes over
// memory would move 4sMN bytes, for M rows of N elements of s bytes. A row that stays
// in registers between the passes is read once:
//
//   softmax_kernel       8 to 1,024 threads keep a row, or a cluster of 2, 4 or 8
//                        blocks, up to 128 bytes each: 2sMN
//   softmax_long_kernel  longer rows. One pass finds maximum and sum together and
//                        rescales the sum whenever the maximum grows ("online
//                        softmax"); a second pass writes: 3sMN
//
// Memory bandwidth limits both. An SM has registers for 1,024 threads of softmax_kernel
// with 128 bytes each, so as much as 128 KB are in flight. They are of two blocks or
// more: one loads while another computes or writes.
//
// Warps exchange values once a row: each takes exponentials relative to its own maximum
// and corrects them by a factor. The order of additions is always the same. Halves are
// computed in float and rounded once. For them exp would take more time than memory
// does, so they use the hardware's exponential of 2, whose error of about 2^-22 is lost
// in the rounding.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <climits>

#include "cluster.h"
#include "approximate.h"
#include "row.h"

using ladder::ceil_div;
using ladder::Cluster;
using ladder::Constant;
using ladder::kWarp;
using ladder::Vector;
using ladder::Wide;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kVectors = 8;    // that a thread keeps at most
constexpr int kThreads = 512;  // of a block with so many
constexpr int kLong = 1024;    // of a block of softmax_long_kernel
template <typename T>
constexpr bool kHalf = sizeof(T) == 2;
// Blocks that an SM should have room for, with 64 registers for a thread.
template <typename T, int threads>
constexpr int kResident = sizeof(T) < 8 && threads <= kThreads
                              ? 1024 / (threads * ladder::rows_of_block(threads))
                              : 1;
constexpr float kLog2E = 1.4426950408889634f;

// e to the power of x, for results of type T.
template <typename T>
__device__ Wide<T> exponential(Wide<T> x) {
  if constexpr (kHalf<T>) {
    return ladder::exp2_approximate(x * kLog2E);
  } else {
    return exp(x);
  }
}

// x - max for a row whose maximum is -infinity would be NaN in this part of it, though
// another part may be finite.
template <typename W>
__device__ W finite_or_zero(W largest) {
  return largest == -INFINITY ? 0 : largest;
}

// -------------------------------------------------------------------------------------
// Kernels. x, out: rows of row_vectors vectors of `bytes` bytes.

// The row state of online softmax: the largest of the values so far, and the sum of
// exp(value - largest).
template <typename W>
struct alignas(2 * sizeof(W)) RowState {
  W largest, sum;
};

// For a warp: merges the states of `n` parts of a row; n is a power of two.
template <typename T, int n>
__device__ RowState<Wide<T>> merge(const RowState<Wide<T>>* states) {
  constexpr int lanes = n < kWarp ? n : kWarp;
  RowState<Wide<T>> all = {-INFINITY, 0}, mine[n / lanes];
#pragma unroll
  for (int i = 0; i < n / lanes; ++i) {
    mine[i] = states[i * lanes + threadIdx.x % lanes];
    all.largest = fmax(all.largest, mine[i].largest);
  }
  all.largest = ladder::max_of_lanes<lanes>(all.largest);
  Wide<T> shift = finite_or_zero(all.largest);
  for (RowState<Wide<T>> one : mine)
    all.sum += one.sum * exponential<T>(one.largest - shift);
  all.sum = ladder::sum_of_lanes<lanes>(all.sum);
  return all;
}

// The factor that turns exp(value - shift) into a result. If all values are -infinity
// it is 0 / 0: NaN, as it should be.
template <typename T>
__device__ Wide<T> rescale(Wide<T> shift, RowState<Wide<T>> row) {
  return exponential<T>(shift - finite_or_zero(row.largest)) / row.sum;
}

// The same bits as a To.
template <typename To, typename From>
__device__ To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "all bits, and no others");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// The part of a row of `count` vectors that a thread keeps in registers; the row begins
// with vector number `first` of x.
template <typename T, int bytes, int threads, int vectors>
struct RowFragment {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  using Word = typename ladder::Word<bytes>::type;
  Word at[vectors];

  // Beyond the row's end the values are -infinity.
  __device__ void load(const T* __restrict__ x, int64_t first, int count) {
    ladder::load_fragment<threads>(at, x, first, count,
                                   bits_as<Word>(ladder::filled<V>(T(-INFINITY))));
  }

  // Calls visit(vector) for all of them up to the first that none of the row's threads
  // has.
  template <typename Visit>
  __device__ void each(int count, Visit visit) {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      if (k * threads < count) visit(at[k]);
    }
  }

  __device__ W largest(int count) {
    if constexpr (kHalf<T> && V::size > 1) {  // two at a time
      using Two = std::conditional_t<std::is_same_v<T, torch::headeronly::Half>,
                                     __half2, __nv_bfloat162>;
      Two largest = bits_as<Two>(Vector<T, 4>{{T(-INFINITY), T(-INFINITY)}});
      each(count, [&](Word word) {
        for (Two two : bits_as<Vector<Two, bytes>>(word).at)
          largest = __hmax2(largest, two);
      });
      return fmax(__low2float(largest), __high2float(largest));
    } else {
      W largest = -INFINITY;
      each(count, [&](Word word) {
        for (T value : bits_as<V>(word).at) largest = fmax(largest, W(value));
      });
      return largest;
    }
  }

  // The sum of exp(value - shift). These replace the values, but for halves, which
  // would round them.
  __device__ W sum_of_exponentials(int count, W shift) {
    W sum = 0;
    each(count, [&](Word& word) {
      V vector = bits_as<V>(word);
      for (T& value : vector.at) {
        W e = exponential<T>(W(value) - shift);
        sum += e;
        value = e;
      }
      if constexpr (!kHalf<T>) word = bits_as<Word>(vector);
    });
    return sum;
  }

  // Writes exp(value - row.largest) / row.sum. from: the shift of sum_of_exponentials.
  __device__ void store(T* __restrict__ out, int64_t first, int count, RowState<W> row,
                        W from) {
    W shift = finite_or_zero(row.largest),
      scale = kHalf<T> ? log2(row.sum) : rescale<T>(from, row);
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      int v = k * threads + threadIdx.x;
      if (v < count) {
        V vector = bits_as<V>(at[k]);
        for (T& value : vector.at) {
          if constexpr (kHalf<T>) {
            value = ladder::exp2_approximate((value - shift) * kLog2E - scale);
          } else {
            value *= scale;
          }
        }
        vector.store(out, first + v);
      }
    }
  }
};

// blocks: how many of a cluster keep one row; each has an equal share of it. A
// cluster's warps send their states to all of its blocks.
template <typename T, int bytes, int threads, int vectors, int blocks>
__global__ void __launch_bounds__(threads* ladder::rows_of_block(threads),
                                  kResident<T, threads>)
    softmax_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t rows,
                   int row_vectors) {
  using W = Wide<T>;
  constexpr int lanes = threads < kWarp ? threads : kWarp, warps = threads / lanes;
  int rank = blocks > 1 ? Cluster::rank() : 0,
      share = (row_vectors + blocks - 1) / blocks, begin = rank * share;
  int64_t row = int64_t(blockIdx.x) / blocks * blockDim.y + threadIdx.y,
          first = row * row_vectors + begin;
  // A row past the end is empty; its threads take part in the shuffles.
  int count = row < rows ? max(0, min(share, row_vectors - begin)) : 0;
  RowFragment<T, bytes, threads, vectors> fragment;
  fragment.load(x, first, count);
  __shared__ RowState<W> warp_states[blocks * warps];
  __shared__ ladder::Mailbox mailbox;
  if constexpr (blocks > 1) {
    if (threadIdx.x == 0) Cluster::init(mailbox, sizeof warp_states);
    // All blocks of the cluster have begun, before one sends to another.
    Cluster::sync();
  }
  W largest = ladder::max_of_lanes<lanes>(fragment.largest(count)),
    shift = finite_or_zero(largest);
  RowState<W> state = {
      largest, ladder::sum_of_lanes<lanes>(fragment.sum_of_exponentials(count, shift))};
  RowState<W> row_state = state;
  int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if constexpr (blocks > 1) {
    if (lane < blocks)
      Cluster::send(warp_states[rank * warps + warp], lane, state, mailbox);
    Cluster::wait(mailbox, 0);  // for the states of every warp of every block
    row_state = merge<T, blocks * warps>(warp_states);
  } else if constexpr (warps > 1) {
    if (lane == 0) warp_states[warp] = state;
    __syncthreads();  // every warp has written its state
    row_state = merge<T, warps>(warp_states);
  }
  fragment.store(out, first, count, row_state, shift);
}

template <typename T, int bytes>
__global__ void __launch_bounds__(kLong)
    softmax_long_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t vectors) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t first = int64_t(blockIdx.x) * vectors;
  W largest = -INFINITY, sum = 0;  // of the elements so far
  for (int64_t v = threadIdx.x; v < vectors; v += kLong) {
    V value = V::load(x, first + v);
    W before = largest;
    for (int j = 0; j < V::size; ++j) largest = fmax(largest, W(value.at[j]));
    if (largest > before) sum *= exponential<T>(before - largest);
    W shift = finite_or_zero(largest);
    for (int j = 0; j < V::size; ++j) sum += exponential<T>(W(value.at[j]) - shift);
  }
  W of_warp = ladder::max_of_lanes<kWarp>(largest);
  sum = ladder::sum_of_lanes<kWarp>(sum *
                                    exponential<T>(largest - finite_or_zero(of_warp)));
  __shared__ RowState<W> warp_states[kLong / kWarp];
  if (threadIdx.x % kWarp == 0) warp_states[threadIdx.x / kWarp] = {of_warp, sum};
  __syncthreads();  // every warp has written its state
  RowState<W> row_state = merge<T, kLong / kWarp>(warp_states);
  W shift = finite_or_zero(row_state.largest), scale = rescale<T>(shift, row_state);
  for (int64_t v = threadIdx.x; v < vectors; v += kLong) {
    V value = V::load(x, first + v);
    for (int j = 0; j < V::size; ++j)
      value.at[j] = T(exponential<T>(W(value.at[j]) - shift) * scale);
    value.store(out, first + v);
  }
}

// -------------------------------------------------------------------------------------
// Launcher

// Returns false if the GPU has no room for such a cluster.
template <typename T, int blocks>
bool launch_cluster(const T* x, T* out, int64_t rows, int row_vectors,
                    cudaStream_t stream) {
  auto kernel = softmax_kernel<T, 16, kThreads, kVectors, blocks>;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(rows * blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int resident = ladder::once_per_device([&] {
    int clusters = 0;
    STD_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    return clusters;
  });
  if (resident == 0) return false;
  STD_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, x, out, rows, row_vectors));
  return true;
}

// A row of up to 64 vectors has 8 threads, so that a warp has 4 rows. Beyond it has as
// many threads as can be, with 2 vectors each, then a cluster.
template <typename T, int bytes>
void launch(const T* x, T* out, int64_t rows, int64_t columns, cudaStream_t stream) {
  int64_t row_vectors = columns / Vector<T, bytes>::size;
  auto one_block = [&](auto threads, auto vectors) {
    constexpr int height = ladder::rows_of_block(threads);
    if (row_vectors > vectors * threads) return false;
    softmax_kernel<T, bytes, threads, vectors, 1>
        <<<ceil_div(rows, height), dim3(threads, height), 0, stream>>>(x, out, rows,
                                                                       row_vectors);
    return true;
  };
  constexpr Constant<2> two;
  constexpr Constant<kVectors> all;
  if (one_block(Constant<8>(), all) || one_block(Constant<64>(), two) ||
      one_block(Constant<128>(), two) || one_block(Constant<256>(), two) ||
      one_block(Constant<512>(), two) || one_block(Constant<1024>(), two) ||
      one_block(Constant<kThreads>(), all))
    return;
  if constexpr (bytes == 16) {
    auto cluster = [&](auto blocks) {
      return row_vectors <= kVectors * kThreads * blocks && rows <= INT_MAX / blocks &&
             launch_cluster<T, blocks>(x, out, rows, row_vectors, stream);
    };
    if (ladder::device_attribute(cudaDevAttrClusterLaunch) &&
        (cluster(Constant<2>()) || cluster(Constant<4>()) || cluster(Constant<8>())))
      return;
  }
  if constexpr (sizeof(T) < 8) {  // doubles would not stay in registers
    if (one_block(Constant<1024>(), all)) return;
  }
  softmax_long_kernel<T, bytes><<<rows, kLong, 0, stream>>>(x, out, row_vectors);
}

Tensor softmax(const Tensor& x) {
  ScalarType dtype = ladder::check_floating_input(x, "x");
  STD_TORCH_CHECK(
      x.dim() > 0,
      "x must have a dimension to sum over, but is a scalar; pass x.view(1)");
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (x.numel() == 0) return out;  // a grid of 0 blocks is an error
  int64_t columns = x.size(x.dim() - 1), rows = x.numel() / columns;
  cudaStream_t stream = ladder::current_stream(x);
  FOR_FLOATING_DTYPE(dtype, [&] {
    using T = scalar_t;
    const T* px = x.const_data_ptr<T>();
    T* po = out.mutable_data_ptr<T>();
    ladder::with_widest<T>(
        columns, [&](auto bytes) { launch<T, bytes>(px, po, rows, columns, stream); },
        px, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.softmax(x), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("softmax(Tensor x) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("softmax", TORCH_BOX(&softmax));
}
