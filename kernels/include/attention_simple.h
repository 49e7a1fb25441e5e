// attention_simple.h: attention without tensor cores, for every dtype and up to kMaxD
// columns: a warp has a row, a lane every 32nd element of it. float32 is computed in
// double: one sum over all keys, in their order, would have a larger error than
// PyTorch's sums of blocks.
#pragma once

#include "attention.h"

namespace ladder {

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

}  // namespace ladder
