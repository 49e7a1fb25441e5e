// softmax.cu: out = exp(x - max) / sum(exp(x - max)) over the last dimension, for
// float64, float32, float16, bfloat16.
//
// The sum of a row needs its maximum, and the outputs need the sum. Three passes over
// memory would move 4sMN bytes, for M rows of N elements of s bytes. A row that stays
// in registers between the passes is read once:
//
//   softmax_kernel       8 to 512 threads keep a row, or a cluster of up to 16 blocks,
//                        up to 128 bytes each: 2sMN
//   softmax_long_kernel  longer rows. One pass finds maximum and sum together and
//                        rescales the sum whenever the maximum grows ("online
//                        softmax"); a second pass writes: 3sMN
//
// Memory bandwidth limits both. An SM has registers for 1,024 threads of softmax_kernel
// with 128 bytes each, so as much as 128 KB are in flight. They are of two blocks or
// more: one loads while another computes or writes. Threads move vectors of 16 bytes. A
// row of any number of columns begins at any address: the elements before its first
// multiple of 16 bytes and those after its last vector, up to 7 each, go one to a
// thread.
//
// Warps exchange values once a row: each takes exponentials relative to its own maximum
// and corrects them by a factor. The order of additions depends on where the row
// begins, modulo 16 bytes, but not on the number of rows. Halves are computed in float
// and rounded once. For them exp would take more time than memory does, so they use the
// hardware's exponential of 2, whose error of about 2^-22 is lost in the rounding.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cluster.h"
#include "approximate.h"
#include "row.h"

using ladder::bits_as;
using ladder::ceil_div;
using ladder::Cluster;
using ladder::Constant;
using ladder::kWarp;
using ladder::Row;
using ladder::Vector;
using ladder::Wide;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kVectors = 8;    // that a thread keeps at most
constexpr int kThreads = 512;  // that keep a row, or a cluster's part of it, at most
constexpr int kWarps = kThreads / kWarp;
constexpr int kBlocks = 16;  // of a cluster, at most
// Of a block of a cluster, unless the largest cluster needs more: then two fit on an
// SM, and one computes while the other loads.
constexpr int kClusterThreads = kThreads * 3 / 4;
constexpr int kLong = 1024;  // threads of a block of softmax_long_kernel
template <typename T>
constexpr bool kHalf = sizeof(T) == 2;
// Blocks that an SM should have room for, with 64 registers for a thread.
template <typename T, int warps>
constexpr int kResident =
    sizeof(T) < 8 ? 1024 / (warps > 1 ? kThreads : ladder::kRowThreads) : 1;
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
// Kernels. x, out: rows x columns.

// The row state of online softmax: the largest of the values so far, and the sum of
// exp(value - largest).
template <typename W>
struct alignas(2 * sizeof(W)) RowState {
  W largest, sum;
};

// For a warp: merges the states of n parts of a row.
template <typename T>
__device__ RowState<Wide<T>> merge(const RowState<Wide<T>>* states, int n) {
  RowState<Wide<T>> all = {-INFINITY, 0};
  int lane = threadIdx.x % kWarp;
  for (int i = lane; i < n; i += kWarp)
    all.largest = fmax(all.largest, states[i].largest);
  all.largest = ladder::max_of_lanes<kWarp>(all.largest);
  Wide<T> shift = finite_or_zero(all.largest);
  for (int i = lane; i < n; i += kWarp)
    all.sum += states[i].sum * exponential<T>(states[i].largest - shift);
  all.sum = ladder::sum_of_lanes<kWarp>(all.sum);
  return all;
}

// The factor that turns exp(value - shift) into a result. If all values are -infinity
// it is 0 / 0: NaN, as it should be.
template <typename T>
__device__ Wide<T> rescale(Wide<T> shift, RowState<Wide<T>> row) {
  return exponential<T>(shift - finite_or_zero(row.largest)) / row.sum;
}

// The part of a row that a thread keeps in registers.
template <typename T, bool aligned, int vectors>
struct RowFragment {
  using V = Vector<T>;
  using W = Wide<T>;
  uint4 at[vectors];
  T single[2];
  int threads;  // of the row, or of the block that has a part of it

  // Where there are no elements the values are -infinity.
  __device__ void load(const T* __restrict__ x, const Row<T, aligned>& row, int64_t n) {
    ladder::load_fragment<aligned>(at, x, row.first, n, row.count, threads,
                                   T(-INFINITY));
    single[0] = single[1] = T(-INFINITY);
    row.each_single([&](int64_t i, int k) { single[k] = x[i]; });
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
    W largest = -INFINITY;
    if constexpr (kHalf<T>) {  // two at a time
      using Two = std::conditional_t<std::is_same_v<T, torch::headeronly::Half>,
                                     __half2, __nv_bfloat162>;
      Two two_largest = bits_as<Two>(Vector<T, 4>{{T(-INFINITY), T(-INFINITY)}});
      each(count, [&](uint4 word) {
        for (Two two : bits_as<Vector<Two>>(word).at)
          two_largest = __hmax2(two_largest, two);
      });
      largest = fmax(__low2float(two_largest), __high2float(two_largest));
    } else {
      each(count, [&](uint4 word) {
        for (T value : bits_as<V>(word).at) largest = fmax(largest, W(value));
      });
    }
    if constexpr (!aligned) largest = fmax(largest, fmax(W(single[0]), W(single[1])));
    return largest;
  }

  // The sum of exp(value - shift). These replace the values, but for halves, which
  // would round them.
  __device__ W sum_of_exponentials(int count, W shift) {
    W sum = 0;
    auto add = [&](T& value) {
      W e = exponential<T>(W(value) - shift);
      sum += e;
      if constexpr (!kHalf<T>) value = e;
    };
    each(count, [&](uint4& word) {
      V vector = bits_as<V>(word);
      for (T& value : vector.at) add(value);
      if constexpr (!kHalf<T>) word = bits_as<uint4>(vector);
    });
    if constexpr (!aligned) add(single[0]), add(single[1]);
    return sum;
  }

  // Writes exp(value - state.largest) / state.sum. from: the shift of
  // sum_of_exponentials.
  __device__ void store(T* __restrict__ out, const Row<T, aligned>& row,
                        RowState<W> state, W from) {
    W shift = finite_or_zero(state.largest),
      scale = kHalf<T> ? log2(state.sum) : rescale<T>(from, state);
    auto result = [&](T value) -> T {
      if constexpr (kHalf<T>) {
        return ladder::exp2_approximate((value - shift) * kLog2E - scale);
      } else {
        return value * scale;
      }
    };
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      int v = k * threads + threadIdx.x;
      if (v < row.count) {
        V vector = bits_as<V>(at[k]);
        for (T& value : vector.at) value = result(value);
        vector.store(out + row.first, v);
      }
    }
    row.each_single([&](int64_t i, int k) { out[i] = result(single[k]); });
  }
};

// lanes: of a warp that have one row: 8, or all. warps: that have one row, at most; a
// block's, if more than 1. blocks: of a cluster, which have an equal share of one row
// each and send the states of their warps to each other; most: 1 without clusters.
template <typename T, bool aligned, int lanes, int warps, int vectors, int most>
__global__ void __launch_bounds__(warps > 1 ? kThreads : ladder::kRowThreads,
                                  kResident<T, warps>)
    softmax_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t rows,
                   int columns, int blocks) {
  using W = Wide<T>;
  int rank = most > 1 ? Cluster::rank() : 0, threads = warps > 1 ? blockDim.x : lanes;
  int64_t block = most > 1 ? blockIdx.x / blocks : blockIdx.x,
          y = warps > 1 ? block : block * blockDim.y + threadIdx.y;
  Row<T, aligned> row(out, y, columns);
  if constexpr (most > 1) row = row.part(rank, blocks);
  // A row past the end is empty; its threads take part in the shuffles.
  if (y >= rows) row.count = row.before = row.after = 0;
  RowFragment<T, aligned, vectors> fragment;
  fragment.threads = threads;
  fragment.load(x, row, rows * columns);
  __shared__ ladder::ClusterValues<RowState<W>, most * warps> states;
  int warps_of_row = threads / kWarp * blocks;
  if constexpr (most > 1) states.begin(warps_of_row);
  W largest = ladder::max_of_lanes<lanes>(fragment.largest(row.count)),
    shift = finite_or_zero(largest);
  RowState<W> state = {largest, ladder::sum_of_lanes<lanes>(
                                    fragment.sum_of_exponentials(row.count, shift))};
  if constexpr (most > 1) {
    states.exchange(state, blocks);
  } else if constexpr (warps > 1) {
    if (threadIdx.x % kWarp == 0) states.at[threadIdx.x / kWarp] = state;
    __syncthreads();  // every warp has written its state
  }
  RowState<W> row_state = warps > 1 ? merge<T>(states.at, warps_of_row) : state;
  fragment.store(out, row, row_state, shift);
}

template <typename T, bool aligned>
__global__ void __launch_bounds__(kLong)
    softmax_long_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t rows,
                        int64_t columns) {
  using V = Vector<T>;
  using W = Wide<T>;
  Row<T, aligned, int64_t> row(out, blockIdx.x, columns);
  auto load = [&](int64_t v) {
    return ladder::load<aligned>(x, row.first, v, rows * columns);
  };
  W largest = -INFINITY, sum = 0;  // of the elements so far
  auto take = [&](const auto& values) {
    W before = largest;
    for (T value : values) largest = fmax(largest, W(value));
    if (largest > before) sum *= exponential<T>(before - largest);
    W shift = finite_or_zero(largest);
    for (T value : values) sum += exponential<T>(W(value) - shift);
  };
  for (int64_t v = threadIdx.x; v < row.count; v += kLong) take(load(v).at);
  row.each_single([&](int64_t i, int) { take(Vector<T, sizeof(T)>::load(x, i).at); });
  W of_warp = ladder::max_of_lanes<kWarp>(largest);
  sum = ladder::sum_of_lanes<kWarp>(sum *
                                    exponential<T>(largest - finite_or_zero(of_warp)));
  __shared__ RowState<W> warp_states[kLong / kWarp];
  if (threadIdx.x % kWarp == 0) warp_states[threadIdx.x / kWarp] = {of_warp, sum};
  __syncthreads();  // every warp has written its state
  RowState<W> row_state = merge<T>(warp_states, kLong / kWarp);
  W shift = finite_or_zero(row_state.largest), scale = rescale<T>(shift, row_state);
  auto result = [&](T value) -> T { return exponential<T>(W(value) - shift) * scale; };
  for (int64_t v = threadIdx.x; v < row.count; v += kLong) {
    V vector = load(v);
    for (T& value : vector.at) value = result(value);
    vector.store(out + row.first, v);
  }
  row.each_single([&](int64_t i, int) { out[i] = result(x[i]); });
}

// -------------------------------------------------------------------------------------
// Launcher

// A row of up to 256 vectors has some lanes of a warp, or all. A longer row has as few
// warps as can keep it, up to those of a cluster: a row that fits badly leaves few
// registers empty, so enough is in flight.
template <typename T, bool aligned>
void launch(const T* x, T* out, int64_t rows, int64_t columns, cudaStream_t stream) {
  int64_t row_vectors = columns / Vector<T>::size;
  auto in_a_warp = [&](auto lanes, auto vectors) {
    constexpr int height = ladder::rows_of_block(lanes);
    if (row_vectors > lanes * vectors) return false;
    softmax_kernel<T, aligned, lanes, 1, vectors, 1>
        <<<ceil_div(rows, height), dim3(lanes, height), 0, stream>>>(x, out, rows,
                                                                     columns, 1);
    return true;
  };
  constexpr Constant<kVectors> all;
  if constexpr (aligned && sizeof(T) < 8) {  // fewer kernels for doubles
    if (ladder::in_few_lanes(in_a_warp)) return;
  }
  if (in_a_warp(Constant<8>(), Constant<2>()) || in_a_warp(Constant<8>(), all) ||
      in_a_warp(Constant<16>(), all) || in_a_warp(Constant<kWarp>(), all))
    return;
  auto [blocks, threads] =
      ladder::threads_of_row(row_vectors, kVectors, kThreads, kClusterThreads, kBlocks);
  if (blocks == 1) {
    softmax_kernel<T, aligned, kWarp, kWarps, kVectors, 1>
        <<<rows, threads, 0, stream>>>(x, out, rows, columns, 1);
    return;
  }
  constexpr auto kernel = softmax_kernel<T, aligned, kWarp, kWarps, kVectors, kBlocks>;
  if (threads > kThreads ||
      !ladder::launch_clusters<kernel, kBlocks, kThreads>(
          rows, {blocks, int(threads)}, stream, x, out, rows, int(columns), blocks))
    softmax_long_kernel<T, aligned><<<rows, kLong, 0, stream>>>(x, out, rows, columns);
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
    ladder::with_alignment<T>(
        columns,
        [&](auto aligned) { launch<T, aligned>(px, po, rows, columns, stream); }, px,
        po);
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
