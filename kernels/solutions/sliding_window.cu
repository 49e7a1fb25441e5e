// sliding_window.cu: Attention to the last few keys. Exercise 1 of lesson 17, about 30 minutes.
//
// In sliding-window attention, query i sees itself and the `window - 1` keys before it.
// The kernels of `attention.cu` ask a mask three things: `visible`, whether a query
// sees a key; `keys_of`, the keys that queries first to last see; `queries_of`, the
// queries that see keys first to last. Write them. A range may hold more than is
// visible, but the kernels visit all of it: with tight ranges, time grows with `tokens
// * window`. Forward and backward use your mask.
//
// Check this file with: python -m helpers check sliding_window
//
// [hints]
// - The mask of lesson 17 is Mask, in kernels/include/attention.h. With a window of 1,
//   a query sees itself alone.
// - A range is {begin, end}, and the end is not in it. Query first sees the lowest key,
//   query last the highest.
// - Keep the ranges inside the matrix: begin is at least 0, end at most `tokens`.
// - Key j is seen by the queries j to j + window - 1.
// [end]

#define LADDER_NO_OPERATORS
#include "../attention.cu"
#include "../attention_backward.cu"

// -------------------------------------------------------------------------------------
// The mask

// [cell]
// Query i sees keys i - window + 1 to i, of as many keys as queries.
struct Window {
  int tokens, window;

  __device__ bool visible(int query, int key) const {
    bool seen = query < tokens && key < tokens;
    // [solution: about 1 line]
    seen = seen && key <= query && query - key < window;
    // [end]
    return seen;
  }
  // The keys that queries first to last see.
  __device__ Range keys_of(int first, int last) const {
    Range keys = {0, tokens};
    // [solution: about 1 line]
    keys = {max(0, first - window + 1), min(tokens, last + 1)};
    // [end]
    return keys;
  }
  // The queries that see keys first to last.
  __device__ Range queries_of(int first, int last) const {
    Range queries = {0, tokens};
    // [solution: about 1 line]
    queries = {first, min(tokens, last + window)};
    // [end]
    return queries;
  }
};
// [end]

// -------------------------------------------------------------------------------------
// Launcher

std::tuple<Tensor, Tensor, Tensor, Tensor> sliding_window(const Tensor& q,
                                                          const Tensor& k,
                                                          const Tensor& v,
                                                          const Tensor& grad,
                                                          int64_t window) {
  Sizes size = check_attention(q, k, v);
  ladder::check_input(grad, "grad", q.scalar_type());
  ladder::check_same(grad, "grad", q, "q");
  STD_TORCH_CHECK(size.tokens == size.tokens_kv,
                  "q and k must have the same number of tokens, got ", size.tokens,
                  " and ", size.tokens_kv);
  STD_TORCH_CHECK(1 <= window && window <= INT32_MAX / 2, "window must be 1 to ",
                  INT32_MAX / 2, ", got ", window);
  auto guard = ladder::on_device_of(q);
  Window mask{size.tokens, int(window)};
  double scale = 1 / std::sqrt(double(size.d));
  auto [out, logsumexp] = forward(q, k, v, size, mask, scale);
  Tensor grad_logsumexp = torch::stable::empty_like(logsumexp);
  torch::stable::zero_(grad_logsumexp);
  auto [grad_q, grad_k, grad_v] =
      backward(grad, grad_logsumexp, q, k, v, out, logsumexp, size, mask, scale);
  return {out, grad_q, grad_k, grad_v};
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "sliding_window(Tensor q, Tensor k, Tensor v, Tensor grad, int window) -> "
      "(Tensor, Tensor, Tensor, Tensor)");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("sliding_window", TORCH_BOX(&sliding_window));
}
