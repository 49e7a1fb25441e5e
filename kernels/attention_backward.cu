// attention_backward.cu: the gradients of attention.cu's results.
//
//   grad, q, out, grad_q       batch x heads x tokens x d
//   k, v, grad_k, grad_v       batch x kv_heads x tokens_kv x d; heads / kv_heads query
//                              heads share one of them
//   grad_logsumexp, logsumexp  batch x heads x tokens
//
// With P the probabilities and S = scale * q @ k^T:
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
//
//   attention_backward_kernel  float16 and bfloat16, d = 64 or 128, on the tensor
//                              cores. A block keeps 64 queries and loops over the
//                              keys, for the gradient of q; or it keeps 64 keys and
//                              loops over the queries, for those of k and v. Each
//                              computes the probabilities again: 7 products instead of
//                              5, but no atomics, so the same inputs give the same bits
//   delta_kernel               before it: the sum of grad * out in each row
//   *_simple_kernel            every floating dtype, d up to 256, any GPU: a warp for
//                              each query, or for each key (attention_simple.h). Slow

#include "attention_simple.h"
#include "attention_tiles.h"

using namespace ladder;

// -------------------------------------------------------------------------------------
// Kernels

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
// Launchers

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
// Registration: torch.ops.<name given to load>.attention_backward(grad, ...), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "attention_backward(Tensor grad, Tensor grad_logsumexp, Tensor q, Tensor k, "
      "Tensor v, Tensor out, "
      "Tensor logsumexp, bool causal=False, float? scale=None) -> (Tensor, Tensor, "
      "Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("attention_backward", TORCH_BOX(&attention_backward));
}

#endif
