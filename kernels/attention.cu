// attention.cu: out = softmax(scale * q @ k^T) @ v in one kernel, and its logsumexp.
// Their gradients: attention_backward.cu.
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
//   attention_simple_kernel    every floating dtype, d up to 256, any GPU: a warp for
//                              each query (attention_simple.h). Slow
//
// causal: query i sees keys 0 to i, as in
// torch.nn.functional.scaled_dot_product_attention. Without a key, out is 0.

#include "attention_simple.h"
#include "attention_tiles.h"

using namespace ladder;

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
// Launchers

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

#ifndef LADDER_NO_OPERATORS

// scale: 1 / sqrt(d) if none is given.
std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                     bool causal, std::optional<double> scale) {
  Sizes size = check_attention(q, k, v);
  auto guard = on_device_of(q);
  return forward(q, k, v, size, Mask{size.tokens, size.tokens_kv, causal},
                 checked_scale(scale.value_or(1 / std::sqrt(double(size.d)))));
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.attention(q, k, v), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, bool causal=False, float? scale=None) "
      "-> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("attention", TORCH_BOX(&attention));
}

#endif
