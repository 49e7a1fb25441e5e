// attention.cu: out = softmax(scale * q @ k^T) @ v in one kernel, its logsumexp, and their gradients.
//
//   q, out      batch x heads x tokens x d
//   k, v        batch x kv_heads x tokens_kv x d; heads / kv_heads query heads share one of them
//   logsumexp   batch x heads x tokens: the logarithm of each row's sum of exponentials, from which the backward
//               computes the row's probabilities again
//
// Three calls in PyTorch write and read the matrix of scores, tokens x tokens_kv for each head: at 16,384 tokens, 512
// MiB in bfloat16. Here a block of threads keeps its queries and takes the keys block by block; scores stay in
// registers. A row's maximum and sum are those of the keys seen so far ("online"). If a later maximum is larger, the
// sum and the output so far are multiplied by exp(old - new). So q and out move once, k and v once for each block of
// queries, mostly from the L2 cache, and the 4 * tokens * tokens_kv * d FLOPs of each head limit the speed.
//
//   attention_kernel           float16 and bfloat16, d = 64 or 128, on the tensor cores: mma.sync, since compute
//                              capability 8.0. A block has 128 queries, a warp 32. The accumulators of q @ k^T have the
//                              layout of the factor of the next product, so probabilities never leave the registers
//   attention_backward_kernel  the same dtypes and d. A block owns 64 queries and takes the keys in turns, for the
//                              gradient of q; or it owns 64 keys and takes the queries, for those of k and v. Each
//                              computes the probabilities again: 7 products instead of 5, but no atomics, so the same
//                              inputs give the same bits
//   delta_kernel               for the backward: the sum of grad * out in each row
//   *_simple_kernel            every floating dtype, d up to 256, any GPU: a warp for each query, or for each key. Slow
//
// causal: query i sees keys 0 to i, as in torch.nn.functional.scaled_dot_product_attention. Without a key, out is 0.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <optional>
#include <tuple>

#include "async_copy.h"
#include "approximate.h"
#include "floating.h"
#include "mma_sync.h"
#include "narrow.h"

using ladder::AsyncCopies;
using ladder::ceil_div;
using ladder::Wide;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr unsigned kAll = 0xffffffffu;  // every lane of a warp
constexpr int kThreads = 128;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

// The sizes that kernels need. `heads` counts those of all batches: head h of q reads head h / group of k and v.
struct Sizes {
  int64_t heads;
  int group, tokens, tokens_kv, d;
};

// ---------------------------------------------------------------------------------------------------------------------
// The mask

struct Range {
  int begin, end;
};

// region mask
// Which keys a query sees. The ranges only save time: they may hold more than is visible, never less.
struct Mask {
  int tokens, tokens_kv;
  bool causal;

  __device__ bool visible(int query, int key) const {
    return query < tokens && key < tokens_kv && (!causal || key <= query);
  }
  // The keys that queries first to last see, and the queries that see keys first to last.
  __device__ Range keys_of(int first, int last) const { return {0, causal ? min(tokens_kv, last + 1) : tokens_kv}; }
  __device__ Range queries_of(int first, int last) const { return {causal ? first : 0, tokens}; }
};
// endregion

// Whether all of these queries see all of these keys, if the keys that a query sees are neighbours.
template <typename Mask>
__device__ bool all_visible(const Mask& mask, int query, int queries, int key, int keys) {
  return mask.visible(query, key + keys - 1) && mask.visible(query + queries - 1, key) && mask.visible(query, key) &&
         mask.visible(query + queries - 1, key + keys - 1);
}

// ---------------------------------------------------------------------------------------------------------------------
// Tiles of rows of d elements in shared memory, and products of a warp

// What is subtracted from scores, for their maximum: -inf - (-inf) would be NaN where all keys so far are masked.
template <typename W>
__device__ W finite_or_0(W largest) {
  return fabs(largest) == INFINITY ? 0 : largest;
}

// Two neighbours, rounded, in 32 bits.
template <typename T>
__device__ uint32_t packed(float first, float second) {
  uint32_t bits;
  if constexpr (std::is_same_v<T, __half>) {
    __half2 both = __floats2half2_rn(first, second);
    memcpy(&bits, &both, 4);
  } else {
    __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    memcpy(&bits, &both, 4);
  }
  return bits;
}

// The index of an element in a tile. 8 neighbours are a piece of 16 bytes; piece p of row r is at position p ^ (r % 8),
// so the 8 rows that ldmatrix reads at once are in different banks.
template <int d>
__device__ int swizzled(int row, int column) {
  return row * d + (column ^ row % 8 * 8);
}

// Starts the copies of `rows` rows from row `first` of a matrix of `count` rows; zeros below its end.
template <int rows, int d, typename T>
__device__ void start_tile(AsyncCopies& copies, T* tile, const T* from, int first, int count) {
  constexpr int apart = kThreads * 8 / d;  // rows that the threads copy at once
  int row = threadIdx.x * 8 / d, column = threadIdx.x * 8 % d;
#pragma unroll
  for (int j = 0; j < rows; j += apart) {
    int y = first + row + j;
    copies.start<16>(&tile[swizzled<d>(row + j, column)], from + int64_t(y) * d + column, y < count);
  }
}

// sum += a @ b^T. a: 16 * r rows from row `row` of a tile; b: all rows of a tile, which are the columns of the sum.
template <int d, typename T, int r, int n>
__device__ void multiply_rows(float (&sum)[r][n][4], const T* a, int row, const T* b) {
  int lane = threadIdx.x % 32;
#pragma unroll(8 / r)  // more at once would need more registers than there are
  for (int i = 0; i < d; i += 16) {
    uint32_t left[r][4], right[4];
#pragma unroll
    for (int y = 0; y < r; ++y) {
      ladder::load_matrices(left[y], &a[swizzled<d>(row + 16 * y + lane % 16, i + lane / 16 * 8)]);
    }
#pragma unroll
    for (int x = 0; x < n; x += 2) {
      ladder::load_matrices(right, &b[swizzled<d>(8 * x + lane / 16 * 8 + lane % 8, i + lane / 8 % 2 * 8)]);
#pragma unroll
      for (int y = 0; y < r; ++y) {
        ladder::multiply_add<T>(sum[y][x], left[y], right[0], right[1]);
        ladder::multiply_add<T>(sum[y][x + 1], left[y], right[2], right[3]);
      }
    }
  }
}

// sum += a @ b. a: in registers, where an earlier product left it, and rounded to T; b: all rows of a tile.
template <int d, typename T, int r, int n>
__device__ void multiply(float (&sum)[r][d / 8][4], const float (&a)[r][n][4], const T* b) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < n; i += 2) {
    uint32_t left[r][4], right[4];
#pragma unroll
    for (int y = 0; y < r; ++y) {
#pragma unroll
      for (int j = 0; j < 4; ++j) left[y][j] = packed<T>(a[y][i + j / 2][j % 2 * 2], a[y][i + j / 2][j % 2 * 2 + 1]);
    }
#pragma unroll
    for (int x = 0; x < d / 8; x += 2) {
      ladder::load_transposed(right, &b[swizzled<d>(8 * i + lane % 16, 8 * x + lane / 16 * 8)]);
#pragma unroll
      for (int y = 0; y < r; ++y) {
        ladder::multiply_add<T>(sum[y][x], left[y], right[0], right[1]);
        ladder::multiply_add<T>(sum[y][x + 1], left[y], right[2], right[3]);
      }
    }
  }
}

// Writes factor * sum to row `row` of a matrix if it has that row. Four lanes share a row; this one has the elements
// sum[x][first] and sum[x][first + 1].
template <int d, typename T>
__device__ void write_row(T* to, int row, int rows, const float (&sum)[d / 8][4], int first, float factor) {
#pragma unroll
  for (int x = 0; x < d / 8; x += 2) {
    uint32_t left = packed<T>(sum[x][first] * factor, sum[x][first + 1] * factor);
    uint32_t right = packed<T>(sum[x + 1][first] * factor, sum[x + 1][first + 1] * factor);
    uint2 four = ladder::four_neighbours(left, right);
    if (row < rows) *reinterpret_cast<uint2*>(&to[int64_t(row) * d + 8 * x + ladder::first_of_four()]) = four;
  }
}

// The sum, or the maximum, over the four lanes that share a row of an accumulator.
__device__ inline float over_four(float x, bool largest) {
  for (int lane = 1; lane < 4; lane *= 2) {
    float other = __shfl_xor_sync(kAll, x, lane);
    x = largest ? fmaxf(x, other) : x + other;
  }
  return x;
}

// ---------------------------------------------------------------------------------------------------------------------
// Forward on tensor cores

constexpr int kQueries = 128, kKeys = 64, kTiles = kQueries / 16 / (kThreads / 32);  // of 16 queries for each warp

template <typename T, int d>
struct ForwardTiles {
  T q[kQueries * d], k[kKeys * d], v[kKeys * d];
};

// What a lane keeps of its 2 * kTiles rows, while blocks of keys come one after the other.
template <int d>
struct Rows {
  float out[kTiles][d / 8][4], largest[kTiles][2], sum[kTiles][2];  // the sum is over the lane's own columns

  // region online
  // Turns scores into probabilities relative to the largest score so far, and adds them up. scale: log2(e) is in it.
  __device__ void absorb(float (&scores)[kTiles][kKeys / 8][4], float scale) {
#pragma unroll
    for (int y = 0; y < kTiles; ++y) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float before = largest[y][half], now = before;
#pragma unroll
        for (int x = 0; x < kKeys / 8; ++x) {
          now = fmaxf(now, fmaxf(scores[y][x][2 * half], scores[y][x][2 * half + 1]));
        }
        now = largest[y][half] = over_four(now, true);
        float shift = finite_or_0(now * scale);
        float shrink = ladder::exp2_approximate(before * scale - shift);
        sum[y][half] *= shrink;
#pragma unroll
        for (int x = 0; x < d / 8; ++x) {
          out[y][x][2 * half] *= shrink;
          out[y][x][2 * half + 1] *= shrink;
        }
#pragma unroll
        for (int x = 0; x < kKeys / 8; ++x) {
#pragma unroll
          for (int j = 2 * half; j < 2 * half + 2; ++j) {
            sum[y][half] += scores[y][x][j] = ladder::exp2_approximate(scores[y][x][j] * scale - shift);
          }
        }
      }
    }
  }
  // endregion
};

template <typename T, int d, typename Mask>
__global__ void __launch_bounds__(kThreads, 2)
    attention_kernel(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out,
                     float* __restrict__ logsumexp, Sizes size, Mask mask, float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto& tile = *reinterpret_cast<ForwardTiles<T, d>*>(shared);
  int blocks = ceil_div(size.tokens, kQueries);
  int64_t head = blockIdx.x / blocks, head_kv = head / size.group;
  int first = (blocks - 1 - int(blockIdx.x % blocks)) * kQueries;  // if causal, the longest blocks come first
  q += head * size.tokens * d, out += head * size.tokens * d, logsumexp += head * size.tokens;
  k += head_kv * size.tokens_kv * d, v += head_kv * size.tokens_kv * d;
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 * kTiles;  // the warp's first row within the tile
  AsyncCopies copies;
  Rows<d> rows = {};
  for (auto& of_tile : rows.largest) of_tile[0] = of_tile[1] = -INFINITY;

  Range keys = mask.keys_of(first, first + kQueries - 1);
  keys.begin = keys.begin / kKeys * kKeys;
  start_tile<kQueries, d>(copies, tile.q, q, first, size.tokens);
  start_tile<kKeys, d>(copies, tile.k, k, keys.begin, size.tokens_kv);
  copies.commit();
  for (int key = keys.begin; key < keys.end; key += kKeys) {
    copies.wait<0>();
    __syncthreads();  // k is here, and every warp has multiplied by the last v: that tile may be filled
    start_tile<kKeys, d>(copies, tile.v, v, key, size.tokens_kv);
    copies.commit();
    float scores[kTiles][kKeys / 8][4] = {};
    multiply_rows<d>(scores, tile.q, row, tile.k);
    if (!all_visible(mask, first + row, 16 * kTiles, key, kKeys)) {
#pragma unroll
      for (int i = 0; i < kTiles * kKeys / 2; ++i) {
        int y = i / (kKeys / 2), x = i / 4 % (kKeys / 8), j = i % 4;
        if (!mask.visible(first + row + 16 * y + lane / 4 + j / 2 * 8, key + 8 * x + lane % 4 * 2 + j % 2)) {
          scores[y][x][j] = -INFINITY;
        }
      }
    }
    rows.absorb(scores, scale);
    copies.wait<0>();
    __syncthreads();  // v is here, and every warp has multiplied by k
    if (key + kKeys < keys.end) start_tile<kKeys, d>(copies, tile.k, k, key + kKeys, size.tokens_kv);
    copies.commit();
    multiply<d>(rows.out, scores, tile.v);
  }

#pragma unroll
  for (int y = 0; y < kTiles; ++y) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int query = first + row + 16 * y + 8 * half + lane / 4;
      float sum = over_four(rows.sum[y][half], false);
      write_row<d>(out, query, size.tokens, rows.out[y], 2 * half, 1 / sum);
      if (query < size.tokens && lane % 4 == 0) {
        logsumexp[query] = (finite_or_0(rows.largest[y][half] * scale) + log2f(sum)) * kLn2;
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Backward on tensor cores. With P the probabilities and S = scale * q @ k^T:
//
//   gradient of v = P^T @ grad         dP = grad @ v^T          dS = P * (dP - delta)
//   gradient of q = scale * dS @ k     gradient of k = scale * dS^T @ q
//
// A block owns rows of two matrices, `own`, and takes those of two others, `other`, in turns. P and dS have a row for
// each own row:
//
//   of_keys    own     other    P           dP              first result    second result
//   false      q, grad k, v     own other^T own other^T     dS @ k          -
//   true       k, v    q, grad  the same, transposed        dS^T @ q        P^T @ grad

constexpr int kOwn = 64;  // 16 for each warp
template <int d>
constexpr int kOther = 4096 / d;

template <typename T, int d>
struct BackwardTiles {
  T own[2][kOwn * d];
  struct Stage {
    T other[2][kOther<d> * d];
    float logsumexp[kOther<d>], delta[kOther<d>];  // of queries, if these are the other rows
  } stages[2];
};

template <bool of_keys, typename T, int d, typename Mask>
__global__ void __launch_bounds__(kThreads, 2)
    attention_backward_kernel(const T* __restrict__ grad, const T* __restrict__ q, const T* __restrict__ k,
                              const T* __restrict__ v, const float* __restrict__ logsumexp,
                              const float* __restrict__ delta, T* __restrict__ first_result,
                              T* __restrict__ second_result, Sizes size, Mask mask, float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto& tile = *reinterpret_cast<BackwardTiles<T, d>*>(shared);
  constexpr int others = kOther<d>, n = others / 8;
  int owned = of_keys ? size.tokens_kv : size.tokens, blocks = ceil_div(owned, kOwn);
  int64_t own_head = blockIdx.x / blocks;
  int block = blockIdx.x % blocks, first = (of_keys ? block : blocks - 1 - block) * kOwn;  // the longest first
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16;
  Range range = of_keys ? mask.queries_of(first, first + kOwn - 1) : mask.keys_of(first, first + kOwn - 1);
  range.begin = range.begin / others * others;
  int per_head = range.begin < range.end ? ceil_div(range.end - range.begin, others) : 0;
  int turns = of_keys ? per_head * size.group : per_head;
  AsyncCopies copies;

  auto of_queries = [&](const T* p, int64_t head) { return p + head * size.tokens * d; };
  auto of_kv = [&](const T* p, int64_t head) { return p + head * size.tokens_kv * d; };
  auto other_head = [&](int turn) { return of_keys ? own_head * size.group + turn / per_head : own_head / size.group; };
  auto other_row = [&](int turn) { return range.begin + turn % per_head * others; };
  auto fill = [&](int turn) {
    auto& stage = tile.stages[turn % 2];
    int64_t head = other_head(turn);
    int begin = other_row(turn), end = of_keys ? size.tokens : size.tokens_kv;
    start_tile<others, d>(copies, stage.other[0], of_keys ? of_queries(q, head) : of_kv(k, head), begin, end);
    start_tile<others, d>(copies, stage.other[1], of_keys ? of_queries(grad, head) : of_kv(v, head), begin, end);
    if (of_keys && threadIdx.x < others) {
      int query = begin + threadIdx.x;
      int64_t at = head * size.tokens + query;
      copies.start<4>(&stage.logsumexp[threadIdx.x], &logsumexp[at], query < end);
      copies.start<4>(&stage.delta[threadIdx.x], &delta[at], query < end);
    }
  };

  start_tile<kOwn, d>(copies, tile.own[0], of_keys ? of_kv(k, own_head) : of_queries(q, own_head), first, owned);
  start_tile<kOwn, d>(copies, tile.own[1], of_keys ? of_kv(v, own_head) : of_queries(grad, own_head), first, owned);
  if (turns > 0) fill(0);
  copies.commit();
  float own_logsumexp[2] = {}, own_delta[2] = {};  // of the lane's two rows, if these are queries
  for (int half = 0; half < 2; ++half) {
    int query = first + row + lane / 4 + 8 * half;
    if (!of_keys && query < size.tokens) {
      own_logsumexp[half] = logsumexp[own_head * size.tokens + query];
      own_delta[half] = delta[own_head * size.tokens + query];
    }
  }
  float first_sum[1][d / 8][4] = {}, second_sum[1][of_keys ? d / 8 : 1][4] = {};
  for (int turn = 0; turn < turns; ++turn) {
    copies.wait<0>();
    __syncthreads();  // this stage is here, and every warp has left the other one
    if (turn + 1 < turns) fill(turn + 1);
    copies.commit();
    const auto& stage = tile.stages[turn % 2];
    int begin = other_row(turn);
    float p[1][n][4] = {}, ds[1][n][4] = {};
    multiply_rows<d>(p, tile.own[0], row, stage.other[0]);
    multiply_rows<d>(ds, tile.own[1], row, stage.other[1]);
    bool whole =
        of_keys ? all_visible(mask, begin, others, first + row, 16) : all_visible(mask, first + row, 16, begin, others);
#pragma unroll
    for (int i = 0; i < 4 * n; ++i) {
      int x = i / 4, j = i % 4;
      int own = first + row + lane / 4 + j / 2 * 8, within = 8 * x + lane % 4 * 2 + j % 2, other = begin + within;
      float to_subtract = of_keys ? stage.logsumexp[within] : own_logsumexp[j / 2];
      float mean = of_keys ? stage.delta[within] : own_delta[j / 2];
      bool visible = whole || (of_keys ? mask.visible(other, own) : mask.visible(own, other));
      p[0][x][j] = visible ? ladder::exp2_approximate(p[0][x][j] * scale - to_subtract * kLog2E) : 0;
      ds[0][x][j] = p[0][x][j] * (ds[0][x][j] - mean);
    }
    multiply<d>(first_sum, ds, stage.other[0]);
    if constexpr (of_keys) multiply<d>(second_sum, p, stage.other[1]);
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int at = first + row + lane / 4 + 8 * half;
    T* to = of_keys ? first_result + own_head * size.tokens_kv * d : first_result + own_head * size.tokens * d;
    write_row<d>(to, at, owned, first_sum[0], 2 * half, scale * kLn2);
    if constexpr (of_keys) {
      write_row<d>(second_result + own_head * size.tokens_kv * d, at, owned, second_sum[0], 2 * half, 1.0f);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Without tensor cores: a warp has a row, a lane every 32nd element of it. float32 is computed in double: one sum over
// all keys, in their order, would have a larger error than PyTorch's sums of blocks.

constexpr int kWarps = 8, kMost = 8;  // warps of a block; elements of a lane: d is at most 32 * kMost

template <typename T>
using Exact = std::conditional_t<sizeof(T) == 2, float, double>;

template <typename W>
__device__ W over_warp(W x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(kAll, x, offset);
  return x;
}

template <typename T>
struct Row {
  Exact<T> at[kMost];

  __device__ static Row load(const T* p, int d) {
    Row row;
#pragma unroll
    for (int i = 0; i < kMost; ++i) row.at[i] = threadIdx.x + 32 * i < d ? Exact<T>(p[threadIdx.x + 32 * i]) : 0;
    return row;
  }

  __device__ void store(T* p, int d, Exact<T> factor) const {
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      if (threadIdx.x + 32 * i < d) p[threadIdx.x + 32 * i] = T(at[i] * factor);
    }
  }

  __device__ Exact<T> dot(const Row& other) const {
    Exact<T> sum = 0;
    for (int i = 0; i < kMost; ++i) sum += at[i] * other.at[i];
    return over_warp(sum);
  }

  // this = factor * this + weight * other
  __device__ void update(Exact<T> factor, Exact<T> weight, const Row& other) {
    for (int i = 0; i < kMost; ++i) at[i] = at[i] * factor + weight * other.at[i];
  }
};

template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    delta_kernel(const T* __restrict__ grad, const T* __restrict__ out, const Wide<T>* __restrict__ grad_logsumexp,
                 Wide<T>* __restrict__ delta, int64_t rows, int d) {
  int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  if (row >= rows) return;
  Exact<T> sum = Row<T>::load(grad + row * d, d).dot(Row<T>::load(out + row * d, d));
  if (threadIdx.x == 0) delta[row] = sum - grad_logsumexp[row];  // logsumexp's gradient is P: it adds to dP
}

template <typename T, typename Mask>
__global__ void __launch_bounds__(32 * kWarps)
    attention_simple_kernel(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                            T* __restrict__ out, Wide<T>* __restrict__ logsumexp, Sizes size, Mask mask,
                            Exact<T> scale) {
  using W = Exact<T>;
  int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  if (row >= size.heads * size.tokens) return;
  int64_t head = row / size.tokens, first = head / size.group * size.tokens_kv;
  int query = row % size.tokens;
  Row<T> own = Row<T>::load(q + row * size.d, size.d), result = {};
  W largest = -INFINITY, sum = 0;
  Range keys = mask.keys_of(query, query);
  for (int key = keys.begin; key < keys.end; ++key) {
    Row<T> row_k = Row<T>::load(k + (first + key) * size.d, size.d);
    Row<T> row_v = Row<T>::load(v + (first + key) * size.d, size.d);
    if (!mask.visible(query, key)) continue;
    W score = own.dot(row_k) * scale;
    W now = fmax(largest, score), shift = finite_or_0(now);
    W shrink = exp(largest - shift), p = exp(score - shift);
    sum = sum * shrink + p;
    result.update(shrink, p, row_v);
    largest = now;
  }
  result.store(out + row * size.d, size.d, 1 / sum);
  if (threadIdx.x == 0) logsumexp[row] = finite_or_0(largest) + log(sum);
}

template <bool of_keys, typename T, typename Mask>
__global__ void __launch_bounds__(32 * kWarps)
    attention_backward_simple_kernel(const T* __restrict__ grad, const T* __restrict__ q, const T* __restrict__ k,
                                     const T* __restrict__ v, const Wide<T>* __restrict__ logsumexp,
                                     const Wide<T>* __restrict__ delta, T* __restrict__ first_result,
                                     T* __restrict__ second_result, Sizes size, Mask mask, Exact<T> scale) {
  using W = Exact<T>;
  int64_t own = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  int owned = of_keys ? size.tokens_kv : size.tokens, others = of_keys ? size.tokens : size.tokens_kv;
  if (own >= (of_keys ? size.heads / size.group : size.heads) * owned) return;
  int64_t head = own / owned;
  int at = own % owned;
  auto row = [&](const T* p, int64_t r) { return Row<T>::load(p + r * size.d, size.d); };
  Row<T> own_first = row(of_keys ? k : q, own), own_second = row(of_keys ? v : grad, own), first = {}, second = {};
  Range range = of_keys ? mask.queries_of(at, at) : mask.keys_of(at, at);
  for (int member = 0; member < (of_keys ? size.group : 1); ++member) {
    int64_t other_head = of_keys ? head * size.group + member : head / size.group;
    for (int i = range.begin; i < range.end; ++i) {
      int64_t other = other_head * others + i, query = of_keys ? other : own;
      Row<T> other_first = row(of_keys ? q : k, other), other_second = row(of_keys ? grad : v, other);
      if (!(of_keys ? mask.visible(i, at) : mask.visible(at, i))) continue;
      W p = exp(own_first.dot(other_first) * scale - logsumexp[query]);
      W ds = p * (own_second.dot(other_second) - delta[query]);
      first.update(1, ds, other_first);
      if (of_keys) second.update(1, p, other_second);
    }
  }
  first.store(first_result + own * size.d, size.d, scale);
  if (of_keys) second.store(second_result + own * size.d, size.d, 1);
}

// ---------------------------------------------------------------------------------------------------------------------
// Launchers

Sizes check_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  ScalarType dtype = ladder::check_floating_input(q, "q");
  ladder::check_input(k, "k", dtype);
  ladder::check_input(v, "v", dtype);
  STD_TORCH_CHECK(q.dim() == 4, "q must have four dimensions, [batch, heads, tokens, d], got shape ",
                  ladder::shape_of(q), "; add those of size 1 with unsqueeze");
  STD_TORCH_CHECK(k.dim() == 4, "k must have four dimensions, [batch, kv_heads, tokens, d], got shape ",
                  ladder::shape_of(k), "; add those of size 1 with unsqueeze");
  ladder::check_same(k, "k", v, "v");
  STD_TORCH_CHECK(q.get_device_index() == k.get_device_index(),
                  "q and k must be on the same device, got cuda:", q.get_device_index(),
                  " and cuda:", k.get_device_index(), "; move one of them");
  STD_TORCH_CHECK(q.size(0) == k.size(0) && q.size(3) == k.size(3),
                  "q and k must have the same batch and d, the first and the last dimension, got shapes ",
                  ladder::shape_of(q), " and ", ladder::shape_of(k));
  STD_TORCH_CHECK(k.size(1) > 0 ? q.size(1) % k.size(1) == 0 : q.size(1) == 0,
                  "q must have a multiple of k's heads, the second dimension, got shapes ", ladder::shape_of(q),
                  " and ", ladder::shape_of(k));
  STD_TORCH_CHECK(1 <= q.size(3) && q.size(3) <= 32 * kMost, "q must have 1 to ", 32 * kMost,
                  " columns, the last dimension, got ", q.size(3));
  int64_t most = INT32_MAX - 2 * kQueries;
  STD_TORCH_CHECK(q.size(2) <= most && k.size(2) <= most, "q and k must have at most ", most, " tokens, got ",
                  q.size(2), " and ", k.size(2));
  return {q.size(0) * q.size(1), k.size(1) > 0 ? int(q.size(1) / k.size(1)) : 1, int(q.size(2)), int(k.size(2)),
          int(q.size(3))};
}

double checked_scale(double scale) {
  STD_TORCH_CHECK(scale > 0 && std::isfinite(scale), "scale must be a positive number, got ", scale,
                  "; change the signs in q for a negative one");
  return scale;
}

unsigned grid_of(int64_t blocks) {
  STD_TORCH_CHECK(blocks <= INT32_MAX, "q and k must need fewer than 2^31 blocks, got ", blocks,
                  "; pass fewer heads at a time");
  return static_cast<unsigned>(blocks);
}

ScalarType wide_dtype(const Tensor& t) {
  return t.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

// Checks attention's results for a checked q, and their gradients.
void check_results(const Tensor& grad, const Tensor& grad_logsumexp, const Tensor& q, const Tensor& out,
                   const Tensor& logsumexp) {
  ladder::check_input(grad, "grad", q.scalar_type());
  ladder::check_input(out, "out", q.scalar_type());
  ladder::check_input(grad_logsumexp, "grad_logsumexp", wide_dtype(q));
  ladder::check_input(logsumexp, "logsumexp", wide_dtype(q));
  ladder::check_same(grad, "grad", q, "q");
  ladder::check_same(out, "out", q, "q");
  ladder::check_same(grad_logsumexp, "grad_logsumexp", logsumexp, "logsumexp");
  STD_TORCH_CHECK(logsumexp.dim() == 3 && logsumexp.numel() == q.size(0) * q.size(1) * q.size(2),
                  "logsumexp must have a value for each row of q, got shapes ", ladder::shape_of(logsumexp), " and ",
                  ladder::shape_of(q));
}

// Tensor cores' kernels copy 16 bytes at a time. A tensor that PyTorch allocates begins at such an address.
Tensor aligned(const Tensor& t) { return ladder::aligned_to_16(t.const_data_ptr()) ? t : torch::stable::clone(t); }

template <typename Kernel>
void allow_shared(Kernel kernel, int bytes) {
  STD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

// Calls run(T*, std::integral_constant<int, d>()) with CUDA's type for the dtype if the kernels on tensor cores take
// these inputs; returns whether they do.
template <typename Run>
bool on_tensor_cores(ScalarType dtype, int d, Run run) {
  bool sixteen_bits = dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
  if (!sixteen_bits || (d != 64 && d != 128)) return false;
  if (ladder::device_attribute(cudaDevAttrComputeCapabilityMajor) < 8) return false;
  auto with_d = [&](auto* type) {
    if (d == 64) run(type, std::integral_constant<int, 64>());
    if (d == 128) run(type, std::integral_constant<int, 128>());
  };
  if (dtype == ScalarType::Half) {
    with_d(static_cast<__half*>(nullptr));
  } else {
    with_d(static_cast<__nv_bfloat16*>(nullptr));
  }
  return true;
}

template <typename T>
const T* data(const Tensor& t) {
  return static_cast<const T*>(t.const_data_ptr());
}
template <typename T>
T* data(Tensor& t) {
  return static_cast<T*>(t.mutable_data_ptr());
}

// mask: a Mask, or a type with the same functions. The arguments are checked.
template <typename Mask>
std::tuple<Tensor, Tensor> forward(const Tensor& given_q, const Tensor& given_k, const Tensor& given_v, Sizes size,
                                   Mask mask, double scale) {
  Tensor q = aligned(given_q), k = aligned(given_k), v = aligned(given_v);
  Tensor out = torch::stable::empty_like(q);
  Tensor logsumexp = torch::stable::new_empty(q, {q.size(0), q.size(1), q.size(2)}, wide_dtype(q));
  if (q.numel() == 0) return {out, logsumexp};  // a grid of 0 blocks is an error
  if (size.tokens_kv == 0) return {torch::stable::zero_(out), torch::stable::fill_(logsumexp, -INFINITY)};
  cudaStream_t stream = ladder::current_stream(q);
  bool done = on_tensor_cores(q.scalar_type(), size.d, [&](auto* type, auto d) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int bytes = sizeof(ForwardTiles<T, d.value>);
    unsigned blocks = grid_of(size.heads * ceil_div(size.tokens, kQueries));
    allow_shared(attention_kernel<T, d.value, Mask>, bytes);
    attention_kernel<T, d.value, Mask><<<blocks, kThreads, bytes, stream>>>(
        data<T>(q), data<T>(k), data<T>(v), data<T>(out), data<float>(logsumexp), size, mask, float(scale * kLog2E));
  });
  if (!done) {
    unsigned blocks = grid_of(ceil_div(size.heads * size.tokens, kWarps));
    FOR_FLOATING_DTYPE(q.scalar_type(), [&] {
      using T = scalar_t;
      attention_simple_kernel<T, Mask><<<blocks, dim3(32, kWarps), 0, stream>>>(
          data<T>(q), data<T>(k), data<T>(v), data<T>(out), data<Wide<T>>(logsumexp), size, mask, Exact<T>(scale));
    });
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {out, logsumexp};
}

// The gradients of q, k and v, for `grad` of out and `grad_logsumexp`.
template <typename Mask>
std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& given_grad, const Tensor& grad_logsumexp,
                                            const Tensor& given_q, const Tensor& given_k, const Tensor& given_v,
                                            const Tensor& out, const Tensor& logsumexp, Sizes size, Mask mask,
                                            double scale) {
  Tensor grad = aligned(given_grad), q = aligned(given_q), k = aligned(given_k), v = aligned(given_v);
  Tensor grad_q = torch::stable::empty_like(q), grad_k = torch::stable::empty_like(k),
         grad_v = torch::stable::empty_like(v), delta = torch::stable::empty_like(logsumexp);
  if (q.numel() == 0 || k.numel() == 0) {
    return {torch::stable::zero_(grad_q), torch::stable::zero_(grad_k), torch::stable::zero_(grad_v)};
  }
  cudaStream_t stream = ladder::current_stream(q);
  int64_t rows = size.heads * size.tokens, rows_kv = size.heads / size.group * size.tokens_kv;
  FOR_FLOATING_DTYPE(q.scalar_type(), [&] {
    using T = scalar_t;
    delta_kernel<T><<<grid_of(ceil_div(rows, kWarps)), dim3(32, kWarps), 0, stream>>>(
        data<T>(grad), data<T>(out), data<Wide<T>>(grad_logsumexp), data<Wide<T>>(delta), rows, size.d);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  bool done = on_tensor_cores(q.scalar_type(), size.d, [&](auto* type, auto d) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int bytes = sizeof(BackwardTiles<T, d.value>);
    unsigned blocks = grid_of(size.heads * ceil_div(size.tokens, kOwn));
    unsigned blocks_kv = grid_of(size.heads / size.group * ceil_div(size.tokens_kv, kOwn));
    allow_shared(attention_backward_kernel<false, T, d.value, Mask>, bytes);
    attention_backward_kernel<false, T, d.value, Mask><<<blocks, kThreads, bytes, stream>>>(
        data<T>(grad), data<T>(q), data<T>(k), data<T>(v), data<float>(logsumexp), data<float>(delta), data<T>(grad_q),
        nullptr, size, mask, float(scale * kLog2E));
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    allow_shared(attention_backward_kernel<true, T, d.value, Mask>, bytes);
    attention_backward_kernel<true, T, d.value, Mask><<<blocks_kv, kThreads, bytes, stream>>>(
        data<T>(grad), data<T>(q), data<T>(k), data<T>(v), data<float>(logsumexp), data<float>(delta), data<T>(grad_k),
        data<T>(grad_v), size, mask, float(scale * kLog2E));
  });
  if (!done) {
    FOR_FLOATING_DTYPE(q.scalar_type(), [&] {
      using T = scalar_t;
      using W = Wide<T>;
      attention_backward_simple_kernel<false, T, Mask>
          <<<grid_of(ceil_div(rows, kWarps)), dim3(32, kWarps), 0, stream>>>(
              data<T>(grad), data<T>(q), data<T>(k), data<T>(v), data<W>(logsumexp), data<W>(delta), data<T>(grad_q),
              nullptr, size, mask, Exact<T>(scale));
      STD_CUDA_KERNEL_LAUNCH_CHECK();
      attention_backward_simple_kernel<true, T, Mask>
          <<<grid_of(ceil_div(rows_kv, kWarps)), dim3(32, kWarps), 0, stream>>>(
              data<T>(grad), data<T>(q), data<T>(k), data<T>(v), data<W>(logsumexp), data<W>(delta), data<T>(grad_k),
              data<T>(grad_v), size, mask, Exact<T>(scale));
    });
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_q, grad_k, grad_v};
}

#ifndef LADDER_NO_OPERATORS

// scale: 1 / sqrt(d) if none is given.
std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                                     std::optional<double> scale) {
  Sizes size = check_attention(q, k, v);
  auto guard = ladder::on_device_of(q);
  return forward(q, k, v, size, Mask{size.tokens, size.tokens_kv, causal},
                 checked_scale(scale.value_or(1 / std::sqrt(double(size.d)))));
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& grad_logsumexp, const Tensor& q,
                                                      const Tensor& k, const Tensor& v, const Tensor& out,
                                                      const Tensor& logsumexp, bool causal,
                                                      std::optional<double> scale) {
  Sizes size = check_attention(q, k, v);
  check_results(grad, grad_logsumexp, q, out, logsumexp);
  auto guard = ladder::on_device_of(q);
  return backward(grad, grad_logsumexp, q, k, v, out, logsumexp, size, Mask{size.tokens, size.tokens_kv, causal},
                  checked_scale(scale.value_or(1 / std::sqrt(double(size.d)))));
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.attention(q, k, v), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("attention(Tensor q, Tensor k, Tensor v, bool causal=False, float? scale=None) -> (Tensor, Tensor)");
  m.def(
      "attention_backward(Tensor grad, Tensor grad_logsumexp, Tensor q, Tensor k, Tensor v, Tensor out, "
      "Tensor logsumexp, bool causal=False, float? scale=None) -> (Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("attention", TORCH_BOX(&attention));
  m.impl("attention_backward", TORCH_BOX(&attention_backward));
}

#endif
