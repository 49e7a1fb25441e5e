// attention.cu: out = softmax(scale * q @ k^T) @ v in one kernel, its logsumexp, and
// their gradients.
//
//   q, out      batch x heads x tokens x d
//   k, v        batch x kv_heads x tokens_kv x d; heads / kv_heads query heads share
//               one of them
//   logsumexp   batch x heads x tokens: the logarithm of each row's sum of
//               exponentials, from which the backward computes the row's probabilities
//               again
//
// Three calls in PyTorch write and read the matrix of scores, tokens x tokens_kv for
// each head: at 16,384 tokens, 512 MiB in bfloat16. Here a block of threads keeps its
// queries and takes the keys block by block; scores stay in registers. A row's state is
// the maximum and the sum over the keys so far ("online softmax"). If a later maximum
// is larger, the sum and the output so far are corrected: multiplied by exp(old - new).
// So q and out move once, k and v once for each block of queries, mostly from the L2
// cache, and the 4 * tokens * tokens_kv * d FLOPs of each head limit the speed.
//
//   attention_kernel           float16 and bfloat16, d = 64 or 128, on the tensor
//                              cores: mma.sync, since compute capability 8.0. A block
//                              has 128 queries, a warp 32. The accumulators of q @ k^T
//                              have the layout of the factor of the next product, so
//                              probabilities never leave the registers
//   attention_backward_kernel  the same dtypes and d. A block keeps 64 queries and
//                              loops over the keys, for the gradient of q; or it keeps
//                              64 keys and loops over the queries, for those of k and
//                              v. Each computes the probabilities again: 7 products
//                              instead of 5, but no atomics, so the same inputs give
//                              the same bits
//   delta_kernel               for the backward: the sum of grad * out in each row
//   *_simple_kernel            every floating dtype, d up to 256, any GPU: a warp for
//                              each query, or for each key. Slow
//
// causal: query i sees keys 0 to i, as in
// torch.nn.functional.scaled_dot_product_attention. Without a key, out is 0.

#include "async_copy.h"
#include "attention.h"
#include "mma_sync.h"

using namespace ladder;

constexpr int kThreads = 128;

// Whether all of these queries see all of these keys, if the keys that a query sees are
// neighbours.
template <typename Mask>
__device__ bool all_visible(const Mask& mask, int query, int queries, int key,
                            int keys) {
  return mask.visible(query, key + keys - 1) &&
         mask.visible(query + queries - 1, key) && mask.visible(query, key) &&
         mask.visible(query + queries - 1, key + keys - 1);
}

// -------------------------------------------------------------------------------------
// Tiles of rows of d elements in shared memory, and products of a warp

// The index of an element in a tile. 8 neighbours are a piece of 16 bytes; piece p of
// row r is at position p ^ (r % 8), so the 8 rows that ldmatrix reads at once are in
// different banks.
template <int d>
__device__ int swizzled(int row, int column) {
  return row * d + (column ^ row % 8 * 8);
}

// Starts the copies of `rows` rows from row `first` of a matrix of `count` rows; zeros
// below its end.
template <int rows, int d, typename T>
__device__ void start_tile(AsyncCopies& copies, T* tile, const T* from, int first,
                           int count) {
  constexpr int apart = kThreads * 8 / d;  // rows that the threads copy at once
  int row = threadIdx.x * 8 / d, column = threadIdx.x * 8 % d;
#pragma unroll
  for (int j = 0; j < rows; j += apart) {
    int y = first + row + j;
    copies.start<16>(&tile[swizzled<d>(row + j, column)],
                     from + int64_t(y) * d + column, y < count);
  }
}

// sum += a @ b^T. a: 16 * r rows from row `row` of a tile; b: all rows of a tile, which
// are the columns of the sum.
template <int d, typename T, int r, int n>
__device__ void multiply_rows(float (&sum)[r][n][4], const T* a, int row, const T* b) {
  int lane = threadIdx.x % 32;
#pragma unroll(8 / r)  // more at once would need more registers than there are
  for (int i = 0; i < d; i += 16) {
    uint32_t left[r][4], right[4];
#pragma unroll
    for (int y = 0; y < r; ++y) {
      load_matrices(left[y],
                    &a[swizzled<d>(row + 16 * y + lane % 16, i + lane / 16 * 8)]);
    }
#pragma unroll
    for (int x = 0; x < n; x += 2) {
      load_matrices(
          right,
          &b[swizzled<d>(8 * x + lane / 16 * 8 + lane % 8, i + lane / 8 % 2 * 8)]);
#pragma unroll
      for (int y = 0; y < r; ++y) {
        multiply_add<T>(sum[y][x], left[y], right[0], right[1]);
        multiply_add<T>(sum[y][x + 1], left[y], right[2], right[3]);
      }
    }
  }
}

// sum += a @ b. a: in registers, where an earlier product left it, and rounded to T; b:
// all rows of a tile.
template <int d, typename T, int r, int n>
__device__ void multiply(float (&sum)[r][d / 8][4], const float (&a)[r][n][4],
                         const T* b) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < n; i += 2) {
    uint32_t left[r][4], right[4];
#pragma unroll
    for (int y = 0; y < r; ++y) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        left[y][j] =
            packed<T>(a[y][i + j / 2][j % 2 * 2], a[y][i + j / 2][j % 2 * 2 + 1]);
    }
#pragma unroll
    for (int x = 0; x < d / 8; x += 2) {
      load_transposed(right, &b[swizzled<d>(8 * i + lane % 16, 8 * x + lane / 16 * 8)]);
#pragma unroll
      for (int y = 0; y < r; ++y) {
        multiply_add<T>(sum[y][x], left[y], right[0], right[1]);
        multiply_add<T>(sum[y][x + 1], left[y], right[2], right[3]);
      }
    }
  }
}

// -------------------------------------------------------------------------------------
// Forward on tensor cores

// Of 16 queries for each warp.
constexpr int kQueries = 128, kKeys = 64, kTiles = kQueries / 16 / (kThreads / 32);

template <typename T, int d>
struct ForwardTiles {
  T q[kQueries * d], k[kKeys * d], v[kKeys * d];
};

// The state of online softmax of a lane's 2 * kTiles rows, while blocks of keys come
// one after the other.
template <int d>
struct RowState {
  // The sum is over the lane's own columns.
  float out[kTiles][d / 8][4], largest[kTiles][2], sum[kTiles][2];

  // region online
  // Turns scores into probabilities relative to the largest score so far, and adds them
  // up. scale: log2(e) is in it.
  __device__ void update(float (&scores)[kTiles][kKeys / 8][4], float scale) {
#pragma unroll
    for (int y = 0; y < kTiles; ++y) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float before = largest[y][half], now = before;
#pragma unroll
        for (int x = 0; x < kKeys / 8; ++x) {
          now = fmaxf(now, fmaxf(scores[y][x][2 * half], scores[y][x][2 * half + 1]));
        }
        now = largest[y][half] = quad_max(now);
        float shift = finite_or_0(now * scale);
        float correction = exp2_approximate(before * scale - shift);
        sum[y][half] *= correction;
#pragma unroll
        for (int x = 0; x < d / 8; ++x) {
          out[y][x][2 * half] *= correction;
          out[y][x][2 * half + 1] *= correction;
        }
#pragma unroll
        for (int x = 0; x < kKeys / 8; ++x) {
#pragma unroll
          for (int j = 2 * half; j < 2 * half + 2; ++j) {
            sum[y][half] += scores[y][x][j] =
                exp2_approximate(scores[y][x][j] * scale - shift);
          }
        }
      }
    }
  }
  // endregion
};

template <typename T, int d, typename Mask>
__global__ void __launch_bounds__(kThreads, 2)
    attention_kernel(const T* __restrict__ q, const T* __restrict__ k,
                     const T* __restrict__ v, T* __restrict__ out,
                     float* __restrict__ logsumexp, Sizes size, Mask mask,
                     float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto& tile = *reinterpret_cast<ForwardTiles<T, d>*>(shared);
  int blocks = ceil_div(size.tokens, kQueries);
  int64_t head = blockIdx.x / blocks, head_kv = head / size.group;
  // If causal, the longest blocks come first.
  int first = (blocks - 1 - int(blockIdx.x % blocks)) * kQueries;
  q += head * size.tokens * d, out += head * size.tokens * d,
      logsumexp += head * size.tokens;
  k += head_kv * size.tokens_kv * d, v += head_kv * size.tokens_kv * d;
  // The warp's first row within the tile.
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 * kTiles;
  AsyncCopies copies;
  RowState<d> state = {};
  for (auto& of_tile : state.largest) of_tile[0] = of_tile[1] = -INFINITY;

  Range keys = mask.keys_of(first, first + kQueries - 1);
  keys.begin = keys.begin / kKeys * kKeys;
  start_tile<kQueries, d>(copies, tile.q, q, first, size.tokens);
  start_tile<kKeys, d>(copies, tile.k, k, keys.begin, size.tokens_kv);
  copies.commit();
  for (int key = keys.begin; key < keys.end; key += kKeys) {
    copies.wait<0>();
    // k is here, and every warp has multiplied by the last v: that tile may be filled.
    __syncthreads();
    start_tile<kKeys, d>(copies, tile.v, v, key, size.tokens_kv);
    copies.commit();
    float scores[kTiles][kKeys / 8][4] = {};
    multiply_rows<d>(scores, tile.q, row, tile.k);
    if (!all_visible(mask, first + row, 16 * kTiles, key, kKeys)) {
#pragma unroll
      for (int i = 0; i < kTiles * kKeys / 2; ++i) {
        int y = i / (kKeys / 2), x = i / 4 % (kKeys / 8), j = i % 4;
        if (!mask.visible(first + row + 16 * y + lane / 4 + j / 2 * 8,
                          key + 8 * x + lane % 4 * 2 + j % 2)) {
          scores[y][x][j] = -INFINITY;
        }
      }
    }
    state.update(scores, scale);
    copies.wait<0>();
    __syncthreads();  // v is here, and every warp has multiplied by k
    if (key + kKeys < keys.end)
      start_tile<kKeys, d>(copies, tile.k, k, key + kKeys, size.tokens_kv);
    copies.commit();
    multiply<d>(state.out, scores, tile.v);
  }

#pragma unroll
  for (int y = 0; y < kTiles; ++y) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int query = first + row + 16 * y + 8 * half + lane / 4;
      float sum = quad_sum(state.sum[y][half]);
      write_row<d>(out, query, size.tokens, state.out[y], 2 * half, 1 / sum);
      if (query < size.tokens && lane % 4 == 0) {
        logsumexp[query] =
            (finite_or_0(state.largest[y][half] * scale) + log2f(sum)) * kLn2;
      }
    }
  }
}

// -------------------------------------------------------------------------------------
// Backward on tensor cores. With P the probabilities and S = scale * q @ k^T:
//
//   gradient of v = P^T @ grad         dP = grad @ v^T          dS = P * (dP - delta)
//   gradient of q = scale * dS @ k     gradient of k = scale * dS^T @ q
//
// A block keeps rows of two matrices, `outer`, and loops over the rows of two others,
// `inner`, a tile in each step. P and dS have a row for each outer row:
//
//   of_keys   outer     inner     P and dP              first result   second result
//   false     q, grad   k, v      outer @ inner^T       dS @ k         -
//   true      k, v      q, grad   the same, transposed  dS^T @ q       P^T @ grad

constexpr int kOuter = 64;  // 16 for each warp
template <int d>
constexpr int kInner = 4096 / d;

template <typename T, int d>
struct BackwardTiles {
  T outer[2][kOuter * d];
  struct Stage {
    T inner[2][kInner<d> * d];
    // Of queries, if these are the inner rows.
    float logsumexp[kInner<d>], delta[kInner<d>];
  } stages[2];
};

template <bool of_keys, typename T, int d, typename Mask>
__global__ void __launch_bounds__(kThreads, 2)
    attention_backward_kernel(const T* __restrict__ grad, const T* __restrict__ q,
                              const T* __restrict__ k, const T* __restrict__ v,
                              const float* __restrict__ logsumexp,
                              const float* __restrict__ delta,
                              T* __restrict__ first_result,
                              T* __restrict__ second_result, Sizes size, Mask mask,
                              float scale) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto& tile = *reinterpret_cast<BackwardTiles<T, d>*>(shared);
  constexpr int inner_rows = kInner<d>, n = inner_rows / 8;
  int outer_rows = of_keys ? size.tokens_kv : size.tokens,
      blocks = ceil_div(outer_rows, kOuter);
  int64_t outer_head = blockIdx.x / blocks;
  // The longest first.
  int block = blockIdx.x % blocks,
      first = (of_keys ? block : blocks - 1 - block) * kOuter;
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16;
  Range range = of_keys ? mask.queries_of(first, first + kOuter - 1)
                        : mask.keys_of(first, first + kOuter - 1);
  range.begin = range.begin / inner_rows * inner_rows;
  int per_head =
      range.begin < range.end ? ceil_div(range.end - range.begin, inner_rows) : 0;
  int steps = of_keys ? per_head * size.group : per_head;
  AsyncCopies copies;

  auto of_queries = [&](const T* p, int64_t head) {
    return p + head * size.tokens * d;
  };
  auto of_kv = [&](const T* p, int64_t head) { return p + head * size.tokens_kv * d; };
  auto inner_head = [&](int step) {
    return of_keys ? outer_head * size.group + step / per_head
                   : outer_head / size.group;
  };
  auto inner_row = [&](int step) { return range.begin + step % per_head * inner_rows; };
  auto fill = [&](int step) {
    auto& stage = tile.stages[step % 2];
    int64_t head = inner_head(step);
    int begin = inner_row(step), end = of_keys ? size.tokens : size.tokens_kv;
    start_tile<inner_rows, d>(copies, stage.inner[0],
                              of_keys ? of_queries(q, head) : of_kv(k, head), begin,
                              end);
    start_tile<inner_rows, d>(copies, stage.inner[1],
                              of_keys ? of_queries(grad, head) : of_kv(v, head), begin,
                              end);
    if (of_keys && threadIdx.x < inner_rows) {
      int query = begin + threadIdx.x;
      int64_t at = head * size.tokens + query;
      copies.start<4>(&stage.logsumexp[threadIdx.x], &logsumexp[at], query < end);
      copies.start<4>(&stage.delta[threadIdx.x], &delta[at], query < end);
    }
  };

  start_tile<kOuter, d>(copies, tile.outer[0],
                        of_keys ? of_kv(k, outer_head) : of_queries(q, outer_head),
                        first, outer_rows);
  start_tile<kOuter, d>(copies, tile.outer[1],
                        of_keys ? of_kv(v, outer_head) : of_queries(grad, outer_head),
                        first, outer_rows);
  if (steps > 0) fill(0);
  copies.commit();
  // Of the lane's two rows, if these are queries.
  float outer_logsumexp[2] = {}, outer_delta[2] = {};
  for (int half = 0; half < 2; ++half) {
    int query = first + row + lane / 4 + 8 * half;
    if (!of_keys && query < size.tokens) {
      outer_logsumexp[half] = logsumexp[outer_head * size.tokens + query];
      outer_delta[half] = delta[outer_head * size.tokens + query];
    }
  }
  float first_sum[1][d / 8][4] = {}, second_sum[1][of_keys ? d / 8 : 1][4] = {};
  for (int step = 0; step < steps; ++step) {
    copies.wait<0>();
    __syncthreads();  // this stage is complete, and no warp still reads the other one
    if (step + 1 < steps) fill(step + 1);
    copies.commit();
    const auto& stage = tile.stages[step % 2];
    int begin = inner_row(step);
    float p[1][n][4] = {}, ds[1][n][4] = {};
    multiply_rows<d>(p, tile.outer[0], row, stage.inner[0]);
    multiply_rows<d>(ds, tile.outer[1], row, stage.inner[1]);
    bool whole = of_keys ? all_visible(mask, begin, inner_rows, first + row, 16)
                         : all_visible(mask, first + row, 16, begin, inner_rows);
#pragma unroll
    for (int i = 0; i < 4 * n; ++i) {
      int x = i / 4, j = i % 4;
      int outer = first + row + lane / 4 + j / 2 * 8,
          within = 8 * x + lane % 4 * 2 + j % 2, inner = begin + within;
      float to_subtract = of_keys ? stage.logsumexp[within] : outer_logsumexp[j / 2];
      float mean = of_keys ? stage.delta[within] : outer_delta[j / 2];
      bool visible =
          whole || (of_keys ? mask.visible(inner, outer) : mask.visible(outer, inner));
      p[0][x][j] =
          visible ? exp2_approximate(p[0][x][j] * scale - to_subtract * kLog2E) : 0;
      ds[0][x][j] = p[0][x][j] * (ds[0][x][j] - mean);
    }
    multiply<d>(first_sum, ds, stage.inner[0]);
    if constexpr (of_keys) multiply<d>(second_sum, p, stage.inner[1]);
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int at = first + row + lane / 4 + 8 * half;
    T* to = of_keys ? first_result + outer_head * size.tokens_kv * d
                    : first_result + outer_head * size.tokens * d;
    write_row<d>(to, at, outer_rows, first_sum[0], 2 * half, scale * kLn2);
    if constexpr (of_keys) {
      write_row<d>(second_result + outer_head * size.tokens_kv * d, at, outer_rows,
                   second_sum[0], 2 * half, 1.0f);
    }
  }
}

// -------------------------------------------------------------------------------------
// Without tensor cores: a warp has a row, a lane every 32nd element of it. float32 is
// computed in double: one sum over all keys, in their order, would have a larger error
// than PyTorch's sums of blocks.

constexpr int kWarps = 8, kMost = kMaxD / 32;  // warps of a block; elements of a lane

template <typename T>
using Exact = std::conditional_t<sizeof(T) == 2, float, double>;

template <typename W>
__device__ W warp_sum(W x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(kAll, x, offset);
  return x;
}

template <typename T>
struct Row {
  Exact<T> at[kMost];

  __device__ static Row load(const T* p, int d) {
    Row row;
#pragma unroll
    for (int i = 0; i < kMost; ++i)
      row.at[i] = threadIdx.x + 32 * i < d ? Exact<T>(p[threadIdx.x + 32 * i]) : 0;
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
    return warp_sum(sum);
  }

  // this = factor * this + weight * other
  __device__ void update(Exact<T> factor, Exact<T> weight, const Row& other) {
    for (int i = 0; i < kMost; ++i) at[i] = at[i] * factor + weight * other.at[i];
  }
};

template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    delta_kernel(const T* __restrict__ grad, const T* __restrict__ out,
                 const Wide<T>* __restrict__ grad_logsumexp,
                 Wide<T>* __restrict__ delta, int64_t rows, int d) {
  int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  if (row >= rows) return;
  Exact<T> sum = Row<T>::load(grad + row * d, d).dot(Row<T>::load(out + row * d, d));
  // logsumexp's gradient is P: it adds to dP.
  if (threadIdx.x == 0) delta[row] = sum - grad_logsumexp[row];
}

template <typename T, typename Mask>
__global__ void __launch_bounds__(32 * kWarps)
    attention_simple_kernel(const T* __restrict__ q, const T* __restrict__ k,
                            const T* __restrict__ v, T* __restrict__ out,
                            Wide<T>* __restrict__ logsumexp, Sizes size, Mask mask,
                            Exact<T> scale) {
  using W = Exact<T>;
  int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  if (row >= size.heads * size.tokens) return;
  int64_t head = row / size.tokens, first = head / size.group * size.tokens_kv;
  int query = row % size.tokens;
  Row<T> row_q = Row<T>::load(q + row * size.d, size.d), result = {};
  W largest = -INFINITY, sum = 0;
  Range keys = mask.keys_of(query, query);
  for (int key = keys.begin; key < keys.end; ++key) {
    Row<T> row_k = Row<T>::load(k + (first + key) * size.d, size.d);
    Row<T> row_v = Row<T>::load(v + (first + key) * size.d, size.d);
    if (!mask.visible(query, key)) continue;
    W score = row_q.dot(row_k) * scale;
    W now = fmax(largest, score), shift = finite_or_0(now);
    W correction = exp(largest - shift), p = exp(score - shift);
    sum = sum * correction + p;
    result.update(correction, p, row_v);
    largest = now;
  }
  result.store(out + row * size.d, size.d, 1 / sum);
  if (threadIdx.x == 0) logsumexp[row] = finite_or_0(largest) + log(sum);
}

template <bool of_keys, typename T, typename Mask>
__global__ void __launch_bounds__(32 * kWarps) attention_backward_simple_kernel(
    const T* __restrict__ grad, const T* __restrict__ q, const T* __restrict__ k,
    const T* __restrict__ v, const Wide<T>* __restrict__ logsumexp,
    const Wide<T>* __restrict__ delta, T* __restrict__ first_result,
    T* __restrict__ second_result, Sizes size, Mask mask, Exact<T> scale) {
  using W = Exact<T>;
  int64_t outer = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  int outer_rows = of_keys ? size.tokens_kv : size.tokens,
      inner_rows = of_keys ? size.tokens : size.tokens_kv;
  if (outer >= (of_keys ? size.heads / size.group : size.heads) * outer_rows) return;
  int64_t head = outer / outer_rows;
  int at = outer % outer_rows;
  auto row = [&](const T* p, int64_t r) {
    return Row<T>::load(p + r * size.d, size.d);
  };
  Row<T> outer_first = row(of_keys ? k : q, outer),
         outer_second = row(of_keys ? v : grad, outer), first = {}, second = {};
  Range range = of_keys ? mask.queries_of(at, at) : mask.keys_of(at, at);
  for (int member = 0; member < (of_keys ? size.group : 1); ++member) {
    int64_t inner_head = of_keys ? head * size.group + member : head / size.group;
    for (int i = range.begin; i < range.end; ++i) {
      int64_t inner = inner_head * inner_rows + i, query = of_keys ? inner : outer;
      Row<T> inner_first = row(of_keys ? q : k, inner),
             inner_second = row(of_keys ? grad : v, inner);
      if (!(of_keys ? mask.visible(i, at) : mask.visible(at, i))) continue;
      W p = exp(outer_first.dot(inner_first) * scale - logsumexp[query]);
      W ds = p * (outer_second.dot(inner_second) - delta[query]);
      first.update(1, ds, inner_first);
      if (of_keys) second.update(1, p, inner_second);
    }
  }
  first.store(first_result + outer * size.d, size.d, scale);
  if (of_keys) second.store(second_result + outer * size.d, size.d, 1);
}

// -------------------------------------------------------------------------------------
// Launchers

// Calls run(T*, std::integral_constant<int, d>()) with CUDA's type for the dtype if the
// kernels on tensor cores take these inputs; returns whether they do.
template <typename Run>
bool on_tensor_cores(ScalarType dtype, int d, Run run) {
  bool sixteen_bits = dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
  if (!sixteen_bits || (d != 64 && d != 128)) return false;
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 8) return false;
  auto with_d = [&](auto* type) {
    if (d == 64) run(type, std::integral_constant<int, 64>());
    if (d == 128) run(type, std::integral_constant<int, 128>());
  };
  FOR_FLOATING_DTYPE(dtype, [&] {
    if constexpr (sizeof(scalar_t) == 2)
      with_d(static_cast<Device<scalar_t>*>(nullptr));
  });
  return true;
}

// mask: a Mask, or a type with the same functions. The arguments are checked.
template <typename Mask>
std::tuple<Tensor, Tensor> forward(const Tensor& given_q, const Tensor& given_k,
                                   const Tensor& given_v, Sizes size, Mask mask,
                                   double scale) {
  Tensor q = aligned(given_q), k = aligned(given_k), v = aligned(given_v);
  Tensor out = torch::stable::empty_like(q);
  Tensor logsumexp =
      torch::stable::new_empty(q, {q.size(0), q.size(1), q.size(2)}, wide_dtype(q));
  if (q.numel() == 0) return {out, logsumexp};  // a grid of 0 blocks is an error
  if (size.tokens_kv == 0)
    return {torch::stable::zero_(out), torch::stable::fill_(logsumexp, -INFINITY)};
  cudaStream_t stream = current_stream(q);
  bool done = on_tensor_cores(q.scalar_type(), size.d, [&](auto* type, auto d) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int bytes = sizeof(ForwardTiles<T, d.value>);
    unsigned blocks = grid_of(size.heads * ceil_div(size.tokens, kQueries));
    allow_shared(attention_kernel<T, d.value, Mask>, bytes);
    attention_kernel<T, d.value, Mask><<<blocks, kThreads, bytes, stream>>>(
        data<T>(q), data<T>(k), data<T>(v), data<T>(out), data<float>(logsumexp), size,
        mask, float(scale * kLog2E));
  });
  if (!done) {
    unsigned blocks = grid_of(ceil_div(size.heads * size.tokens, kWarps));
    FOR_FLOATING_DTYPE(q.scalar_type(), [&] {
      using T = scalar_t;
      attention_simple_kernel<T, Mask><<<blocks, dim3(32, kWarps), 0, stream>>>(
          data<T>(q), data<T>(k), data<T>(v), data<T>(out), data<Wide<T>>(logsumexp),
          size, mask, Exact<T>(scale));
    });
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {out, logsumexp};
}

// The gradients of q, k and v, for `grad` of out and `grad_logsumexp`.
template <typename Mask>
std::tuple<Tensor, Tensor, Tensor> backward(
    const Tensor& given_grad, const Tensor& grad_logsumexp, const Tensor& given_q,
    const Tensor& given_k, const Tensor& given_v, const Tensor& out,
    const Tensor& logsumexp, Sizes size, Mask mask, double scale) {
  Tensor grad = aligned(given_grad), q = aligned(given_q), k = aligned(given_k),
         v = aligned(given_v);
  Tensor grad_q = torch::stable::empty_like(q), grad_k = torch::stable::empty_like(k),
         grad_v = torch::stable::empty_like(v),
         delta = torch::stable::empty_like(logsumexp);
  if (q.numel() == 0 || k.numel() == 0) {
    return {torch::stable::zero_(grad_q), torch::stable::zero_(grad_k),
            torch::stable::zero_(grad_v)};
  }
  cudaStream_t stream = current_stream(q);
  int64_t rows = size.heads * size.tokens,
          rows_kv = size.heads / size.group * size.tokens_kv;
  FOR_FLOATING_DTYPE(q.scalar_type(), [&] {
    using T = scalar_t;
    delta_kernel<T><<<grid_of(ceil_div(rows, kWarps)), dim3(32, kWarps), 0, stream>>>(
        data<T>(grad), data<T>(out), data<Wide<T>>(grad_logsumexp),
        data<Wide<T>>(delta), rows, size.d);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  bool done = on_tensor_cores(q.scalar_type(), size.d, [&](auto* type, auto d) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int bytes = sizeof(BackwardTiles<T, d.value>);
    unsigned blocks = grid_of(size.heads * ceil_div(size.tokens, kOuter));
    unsigned blocks_kv =
        grid_of(size.heads / size.group * ceil_div(size.tokens_kv, kOuter));
    allow_shared(attention_backward_kernel<false, T, d.value, Mask>, bytes);
    attention_backward_kernel<false, T, d.value, Mask>
        <<<blocks, kThreads, bytes, stream>>>(
            data<T>(grad), data<T>(q), data<T>(k), data<T>(v), data<float>(logsumexp),
            data<float>(delta), data<T>(grad_q), nullptr, size, mask,
            float(scale * kLog2E));
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    allow_shared(attention_backward_kernel<true, T, d.value, Mask>, bytes);
    attention_backward_kernel<true, T, d.value, Mask>
        <<<blocks_kv, kThreads, bytes, stream>>>(
            data<T>(grad), data<T>(q), data<T>(k), data<T>(v), data<float>(logsumexp),
            data<float>(delta), data<T>(grad_k), data<T>(grad_v), size, mask,
            float(scale * kLog2E));
  });
  if (!done) {
    FOR_FLOATING_DTYPE(q.scalar_type(), [&] {
      using T = scalar_t;
      using W = Wide<T>;
      attention_backward_simple_kernel<false, T, Mask>
          <<<grid_of(ceil_div(rows, kWarps)), dim3(32, kWarps), 0, stream>>>(
              data<T>(grad), data<T>(q), data<T>(k), data<T>(v), data<W>(logsumexp),
              data<W>(delta), data<T>(grad_q), nullptr, size, mask, Exact<T>(scale));
      STD_CUDA_KERNEL_LAUNCH_CHECK();
      attention_backward_simple_kernel<true, T, Mask>
          <<<grid_of(ceil_div(rows_kv, kWarps)), dim3(32, kWarps), 0, stream>>>(
              data<T>(grad), data<T>(q), data<T>(k), data<T>(v), data<W>(logsumexp),
              data<W>(delta), data<T>(grad_k), data<T>(grad_v), size, mask,
              Exact<T>(scale));
    });
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_q, grad_k, grad_v};
}

#ifndef LADDER_NO_OPERATORS

// scale: 1 / sqrt(d) if none is given.
std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                     bool causal, std::optional<double> scale) {
  Sizes size = check_attention(q, k, v);
  auto guard = on_device_of(q);
  return forward(q, k, v, size, Mask{size.tokens, size.tokens_kv, causal},
                 checked_scale(scale.value_or(1 / std::sqrt(double(size.d)))));
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(
    const Tensor& grad, const Tensor& grad_logsumexp, const Tensor& q, const Tensor& k,
    const Tensor& v, const Tensor& out, const Tensor& logsumexp, bool causal,
    std::optional<double> scale) {
  Sizes size = check_attention(q, k, v);
  check_results(grad, grad_logsumexp, q, out, logsumexp);
  auto guard = on_device_of(q);
  return backward(grad, grad_logsumexp, q, k, v, out, logsumexp, size,
                  Mask{size.tokens, size.tokens_kv, causal},
                  checked_scale(scale.value_or(1 / std::sqrt(double(size.d)))));
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.attention(q, k, v), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, bool causal=False, float? scale=None) "
      "-> (Tensor, Tensor)");
  m.def(
      "attention_backward(Tensor grad, Tensor grad_logsumexp, Tensor q, Tensor k, "
      "Tensor v, Tensor out, "
      "Tensor logsumexp, bool causal=False, float? scale=None) -> (Tensor, Tensor, "
      "Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("attention", TORCH_BOX(&attention));
  m.impl("attention_backward", TORCH_BOX(&attention_backward));
}

#endif
