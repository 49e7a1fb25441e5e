// softmax.cu: out = exp(x - max) / sum(exp(x - max)) over the last dimension, for float64, float32, float16, bfloat16.
//
// The sum of a row needs its maximum, and the outputs need the sum. Three passes over memory would move 4sMN bytes, for
// M rows of N elements of s bytes. A row that stays in registers between the passes is read once:
//
//   softmax_kernel          8 to 256 threads keep a row, or 1,024 if it is not of halves, up to 32 floats each: 2sMN
//   softmax_staged_kernel   a cluster of 2, 4 or 8 blocks keeps a row. While one is computed, the next are copied: 2sMN
//   softmax_long_kernel     longer rows, GPUs without clusters. One pass finds maximum and sum together and rescales
//                           the sum whenever the maximum grows ("online"); a second pass writes: 3sMN
//
// Memory bandwidth limits all three. Warps exchange values once a row: each takes exponentials relative to its own
// maximum and corrects them by a factor. The order of additions is always the same. Halves are computed in float and
// rounded once. For them exp would take more time than memory does, so they use the hardware's exponential of 2, whose
// error of about 2^-22 is lost in the rounding.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "async_copy.h"
#include "cluster.h"
#include "exp2.h"
#include "row.h"

using ladder::ceil_div;
using ladder::Constant;
using ladder::kWarp;
using ladder::Part;
using ladder::Vector;
using ladder::Wide;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

template <typename T>
constexpr int kPlain = sizeof(T) == 2 ? 256 : 1024;  // threads of the largest block that softmax_kernel uses
template <typename T>
constexpr int kStages = sizeof(T) == 2 ? 3 : 1;  // rows in flight
constexpr int kLong = 1024;                      // threads of a block of softmax_long_kernel

// e to the power of x, for results of type T.
template <typename T>
__device__ Wide<T> exponential(Wide<T> x) {
  if constexpr (sizeof(T) == 2) {
    return ladder::exp2_approximate(x * 1.4426950408889634f);
  } else {
    return exp(x);
  }
}

// x - max for a row whose maximum is -infinity would be NaN in this part of it, though another part may be finite.
template <typename W>
__device__ W finite_or_zero(W largest) {
  return largest == -INFINITY ? 0 : largest;
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernels. x, out: rows of row_vectors vectors of `bytes` bytes.

// What some threads know of a row: the largest of their values, and the sum of exp(value - largest).
template <typename W>
struct alignas(2 * sizeof(W)) Seen {
  W largest, sum;
};

// Replaces the values by exp(value - the largest of the warp), or of the `lanes` lanes that have a row.
template <typename T, int lanes, typename P>
__device__ Seen<Wide<T>> exponentials(P& part, int count) {
  Wide<T> largest = -INFINITY, sum = 0;
  part.each(count, [&](Wide<T>& x) { largest = fmax(largest, x); });
  largest = ladder::max_of_lanes<lanes>(largest);
  Wide<T> shift = finite_or_zero(largest);
  part.each(count, [&](Wide<T>& x) { sum += x = exponential<T>(x - shift); });
  return {largest, ladder::sum_of_lanes<lanes>(sum)};
}

// For a warp: puts together what `n` others have seen, a power of two.
template <typename T, int n>
__device__ Seen<Wide<T>> together(const Seen<Wide<T>>* others) {
  constexpr int lanes = n < kWarp ? n : kWarp;
  Seen<Wide<T>> all = {-INFINITY, 0}, seen[n / lanes];
#pragma unroll
  for (int i = 0; i < n / lanes; ++i) {
    seen[i] = others[i * lanes + threadIdx.x % lanes];
    all.largest = fmax(all.largest, seen[i].largest);
  }
  all.largest = ladder::max_of_lanes<lanes>(all.largest);
  Wide<T> shift = finite_or_zero(all.largest);
  for (Seen<Wide<T>> one : seen) all.sum += one.sum * exponential<T>(one.largest - shift);
  all.sum = ladder::sum_of_lanes<lanes>(all.sum);
  return all;
}

// What exp(value - `own` maximum) must be multiplied by. If all values are -infinity it is 0 / 0: NaN, as it should be.
template <typename T>
__device__ Wide<T> factor(Wide<T> own, Seen<Wide<T>> row) {
  return exponential<T>(own - finite_or_zero(row.largest)) / row.sum;
}

template <typename T, int bytes, int threads>
__global__ void __launch_bounds__(threads* ladder::rows_of_block(threads))
    softmax_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t rows, int row_vectors) {
  using W = Wide<T>;
  constexpr int lanes = threads < kWarp ? threads : kWarp;
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  int count = row < rows ? row_vectors : 0;  // a row past the end is empty; its threads take part in the shuffles
  Part<T, bytes, threads> part;
  part.load(x, row * row_vectors, count, T(-INFINITY));
  Seen<W> seen = exponentials<T, lanes>(part, count), of_row = seen;
  if constexpr (threads > lanes) {
    __shared__ Seen<W> of_warps[threads / lanes];
    if (threadIdx.x % lanes == 0) of_warps[threadIdx.x / lanes] = seen;
    __syncthreads();  // every warp has written what it has seen
    of_row = together<T, threads / lanes>(of_warps);
  }
  W scale = factor<T>(seen.largest, of_row);
  part.each(count, [&](W& e) { e *= scale; });
  part.store(out, row * row_vectors, count);
}

// One row after the other, while the next ones are in flight to shared memory. A thread copies the vectors that it
// will read, so it waits for its own copies only. Each block of a cluster has an equal share of the row.
//
// No barrier is between the rows: it would wait until the results of the last one are in the L2 cache. A warp sends
// what it has seen to all blocks, and waits for what all warps have sent to its own. It sends for turn t + 2 when it
// has received all of turn t + 1, so every warp has sent that, and before has read the values of turn t: their place is
// free, and their phase of the inbox is over. A block that has received all of its last row gets nothing more.
template <typename T, int threads, int blocks>
__global__ void __launch_bounds__(threads)
    softmax_staged_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t rows, int row_vectors) {
  using V = Vector<T>;
  using W = Wide<T>;
  using Blocks = ladder::Blocks;
  constexpr int warps = threads / kWarp;
  using Row = Part<T, 16, threads>;
  extern __shared__ __align__(16) char memory[];
  auto stages = reinterpret_cast<V(*)[Row::vectors][threads]>(memory);
  __shared__ Seen<W> of_warps[2][blocks * warps];  // of all blocks, for two rows
  __shared__ ladder::Inbox inbox[2];
  int share = (row_vectors + blocks - 1) / blocks, begin = Blocks::rank() * share;
  int count = max(0, min(share, row_vectors - begin));
  int64_t step = gridDim.x / blocks;
#pragma unroll
  for (int k = 0; k < Row::vectors; ++k) {  // for the vectors that no copy writes
    for (int stage = 0; stage < kStages<T>; ++stage) stages[stage][k][threadIdx.x] = ladder::filled<V>(T(-INFINITY));
  }
  ladder::AsyncCopies copies;
  auto request = [&](int64_t row, int stage) {
#pragma unroll
    for (int k = 0; k < Row::vectors; ++k) {
      int v = k * threads + threadIdx.x;
      if (row < rows && v < count)
        ladder::copy_vector(copies, stages[stage][k][threadIdx.x], x, row * row_vectors + begin + v);
    }
    copies.commit();
  };
  if (threadIdx.x == 0) {
    for (ladder::Inbox& one : inbox) Blocks::open(one, sizeof of_warps[0]);
  }
  Blocks::sync();  // all blocks of the cluster have begun, before one sends to another
  int64_t row = blockIdx.x / blocks;
  for (int stage = 0; stage < kStages<T>; ++stage) request(row + stage * step, stage);
  for (int turn = 0; row < rows; row += step, ++turn) {
    int stage = turn % kStages<T>;
    copies.template wait<kStages<T> - 1>();
    Row part;
#pragma unroll
    for (int k = 0; k < Row::vectors; ++k) part.widen(k, V::load(stages[stage][k][threadIdx.x].at, 0));
    request(row + kStages<T> * step, stage);
    Seen<W> seen = exponentials<T, kWarp>(part, count);
    int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    auto& of_row = of_warps[turn % 2];
    ladder::Inbox& received = inbox[turn % 2];
    if (lane < blocks) Blocks::send(of_row[Blocks::rank() * warps + warp], lane, seen, received);
    Blocks::wait(received, turn / 2 % 2);  // for what every warp of every block has seen
    if (threadIdx.x == 0) Blocks::expect(received, sizeof of_row);
    W scale = factor<T>(seen.largest, together<T, blocks * warps>(of_row));
    part.each(count, [&](W& e) { e *= scale; });
    part.store(out, row * row_vectors + begin, count);
  }
}

template <typename T, int bytes>
__global__ void __launch_bounds__(kLong)
    softmax_long_kernel(const T* __restrict__ x, T* __restrict__ out, int64_t row_vectors) {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  int64_t first = int64_t(blockIdx.x) * row_vectors;
  W largest = -INFINITY, sum = 0;  // of the elements that this thread has seen
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V value = V::load(x, first + v);
    W before = largest;
    for (int j = 0; j < V::size; ++j) largest = fmax(largest, W(value.at[j]));
    if (largest > before) sum *= exponential<T>(before - largest);
    W shift = finite_or_zero(largest);
    for (int j = 0; j < V::size; ++j) sum += exponential<T>(W(value.at[j]) - shift);
  }
  W of_warp = ladder::max_of_lanes<kWarp>(largest);
  sum = ladder::sum_of_lanes<kWarp>(sum * exponential<T>(largest - finite_or_zero(of_warp)));
  __shared__ Seen<W> of_warps[kLong / kWarp];
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = {of_warp, sum};
  __syncthreads();  // every warp has written what it has seen
  Seen<W> of_row = together<T, kLong / kWarp>(of_warps);
  W shift = finite_or_zero(of_row.largest), scale = factor<T>(shift, of_row);
  for (int64_t v = threadIdx.x; v < row_vectors; v += kLong) {
    V value = V::load(x, first + v);
    for (int j = 0; j < V::size; ++j) value.at[j] = T(exponential<T>(W(value.at[j]) - shift) * scale);
    value.store(out, first + v);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

// Returns false if the GPU has no room for such a cluster.
template <typename T, int threads, int blocks>
bool launch_staged(const T* x, T* out, int64_t rows, int row_vectors, cudaStream_t stream) {
  constexpr int shared = kStages<T> * threads * Part<T, 16, threads>::vectors * 16;
  auto kernel = softmax_staged_kernel<T, threads, blocks>;
  STD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int resident = ladder::once_per_device([&] {
    int clusters = 0;
    STD_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    return clusters;
  });
  if (resident == 0) return false;
  config.gridDim.x = blocks * std::min<int64_t>(rows, resident);
  STD_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, x, out, rows, row_vectors));
  return true;
}

// Uses the fewest threads per row that can keep it in registers.
template <typename T, int bytes>
void launch(const T* x, T* out, int64_t rows, int64_t columns, cudaStream_t stream) {
  int64_t row_vectors = columns / Vector<T, bytes>::size;
  constexpr int vectors = Part<T, bytes, 1>::vectors;
  auto plain = [&](auto threads) {
    constexpr int height = ladder::rows_of_block(threads);
    if (row_vectors > vectors * threads) return false;
    softmax_kernel<T, bytes, threads>
        <<<ceil_div(rows, height), dim3(threads, height), 0, stream>>>(x, out, rows, row_vectors);
    return true;
  };
  if (plain(Constant<8>()) || plain(Constant<32>()) || plain(Constant<64>()) || plain(Constant<128>()) ||
      plain(Constant<256>()) || plain(Constant<kPlain<T>>()))
    return;
  if constexpr (bytes == 16) {
    auto staged = [&](auto threads, auto blocks) {
      return row_vectors <= vectors * threads * blocks &&
             launch_staged<T, threads, blocks>(x, out, rows, row_vectors, stream);
    };
    constexpr Constant<kPlain<T>> few;
    constexpr Constant<sizeof(T) == 2 ? 512 : 1024> many;
    if (ladder::device_attribute(cudaDevAttrClusterLaunch) &&
        (staged(few, Constant<2>()) || staged(few, Constant<4>()) || staged(few, Constant<8>()) ||
         staged(many, Constant<8>())))
      return;
  }
  softmax_long_kernel<T, bytes><<<rows, kLong, 0, stream>>>(x, out, row_vectors);
}

Tensor softmax(const Tensor& x) {
  ScalarType dtype = ladder::check_floating_input(x, "x");
  STD_TORCH_CHECK(x.dim() > 0, "x must have a dimension to sum over, but is a scalar; pass x.view(1)");
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (x.numel() == 0) return out;  // a grid of 0 blocks is an error
  int64_t columns = x.size(x.dim() - 1), rows = x.numel() / columns;
  cudaStream_t stream = ladder::current_stream(x);
  FOR_FLOATING_DTYPE(dtype, [&] {
    using T = scalar_t;
    const T* px = x.const_data_ptr<T>();
    T* po = out.mutable_data_ptr<T>();
    ladder::with_widest<T>(columns, [&](auto bytes) { launch<T, bytes>(px, po, rows, columns, stream); }, px, po);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.softmax(x), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("softmax(Tensor x) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("softmax", TORCH_BOX(&softmax)); }
