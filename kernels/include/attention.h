// attention.h: what the attention kernels share: sizes, the mask, results in registers,
// and the launchers' checks.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "approximate.h"
#include "floating.h"
#include "narrow.h"

namespace ladder {

constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;
constexpr int kMaxD = 256;
constexpr int64_t kL2Bytes = 32 << 20;  // of the 50 MB of an H100 or H200

// The sizes that kernels need. `heads` counts those of all batches: head h of q reads
// head h / group of k and v.
struct Sizes {
  int64_t heads;
  int group, tokens, tokens_kv, d;
};

// -------------------------------------------------------------------------------------
// The mask

struct Range {
  int begin, end;
};

// region mask
// Which keys a query sees. The ranges only save time: they may hold more than is
// visible, never less.
struct Mask {
  int tokens, tokens_kv;
  bool causal;

  __device__ bool visible(int query, int key) const {
    return query < tokens && key < tokens_kv && (!causal || key <= query);
  }
  // The keys that queries first to last see, and the queries that see keys first to
  // last.
  __device__ Range keys_of(int first, int last) const {
    return {0, causal ? min(tokens_kv, last + 1) : tokens_kv};
  }
  __device__ Range queries_of(int first, int last) const {
    return {causal ? first : 0, tokens};
  }
};
// endregion

// Query i sees keys i - before to i + after; both may be negative. queries_of may reach
// beyond the queries.
struct Band {
  int tokens, tokens_kv, before, after;

  // The same window of as many tokens, aligned to the end: before and after count from
  // the key that lies as far before the last key as the query before the last query.
  __host__ __device__ Band aligned(int tokens, int tokens_kv) const {
    int shift = tokens_kv - tokens;
    return {tokens, tokens_kv, before - shift, after + shift};
  }
  __device__ Range keys_of(int first, int last) const {
    return {max(0, first - before), min(tokens_kv, last + after + 1)};
  }
  __device__ Range queries_of(int first, int last) const {
    return {first - after, last + before + 1};
  }
};

// -------------------------------------------------------------------------------------
// What a score is of a product of q and k, in powers of 2: `scale` times of(product).
// slope: of's derivative where it is x, which may be masked, but for a constant.

struct Scaled {
  float scale;
  __device__ float of(float product) const { return product; }
  __device__ float slope(float) const { return 1; }
};

// A soft cap: scores are cap * tanh(product * scale / cap).
struct Capped {
  float scale, inside;
  __device__ float of(float product) const { return tanh_of_log2(product * inside); }
  __device__ float slope(float x) const { return 1 - fmaxf(x, -1) * fmaxf(x, -1); }
};

// -------------------------------------------------------------------------------------
// Scores and accumulators in registers

// What is subtracted from scores, for their maximum: -inf - (-inf) would be NaN where
// all keys so far are masked.
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

// The maximum, and the sum, over the four lanes that share a row of an accumulator.
__device__ inline float quad_max(float x) {
  for (int lane = 1; lane < 4; lane *= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, lane));
  return x;
}
__device__ inline float quad_sum(float x) {
  for (int lane = 1; lane < 4; lane *= 2) x += __shfl_xor_sync(kAll, x, lane);
  return x;
}

// Writes factor * sum to row `row` of a matrix if it has that row. Four lanes share a
// row; this one has the elements sum[x][first] and sum[x][first + 1]. pitch: elements
// from a row to the next. limited: only the first `columns`, a multiple of 8.
template <int d, bool limited = false, typename T>
__device__ void write_row(T* to, int row, int rows, const float (&sum)[d / 8][4],
                          int first, float factor, int64_t pitch = d, int columns = d) {
#pragma unroll
  for (int x = 0; x < d / 8; x += 2) {
    uint32_t left = packed<T>(sum[x][first] * factor, sum[x][first + 1] * factor);
    uint32_t right =
        packed<T>(sum[x + 1][first] * factor, sum[x + 1][first + 1] * factor);
    uint2 four = ladder::four_neighbours(left, right);
    int within = ladder::first_of_four();
    if (row < rows && (!limited || 8 * x + within < columns))
      *reinterpret_cast<uint2*>(&to[row * pitch + 8 * x + within]) = four;
  }
}

// -------------------------------------------------------------------------------------
// Launchers

inline Sizes check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                             bool strided = false) {
  ScalarType dtype = ladder::check_floating_input(q, "q", strided);
  ladder::check_input(k, "k", dtype, strided);
  ladder::check_input(v, "v", dtype, strided);
  STD_TORCH_CHECK(q.dim() == 4,
                  "q must have four dimensions, [batch, heads, tokens, d], got shape ",
                  ladder::shape_of(q), "; add those of size 1 with unsqueeze");
  STD_TORCH_CHECK(
      k.dim() == 4,
      "k must have four dimensions, [batch, kv_heads, tokens, d], got shape ",
      ladder::shape_of(k), "; add those of size 1 with unsqueeze");
  ladder::check_same(k, "k", v, "v");
  check_same_device(q, "q", k, "k");
  STD_TORCH_CHECK(q.size(0) == k.size(0) && q.size(3) == k.size(3),
                  "q and k must have the same batch and d, the first and the last "
                  "dimension, got shapes ",
                  ladder::shape_of(q), " and ", ladder::shape_of(k));
  STD_TORCH_CHECK(
      k.size(1) > 0 ? q.size(1) % k.size(1) == 0 : q.size(1) == 0,
      "q must have a multiple of k's heads, the second dimension, got shapes ",
      ladder::shape_of(q), " and ", ladder::shape_of(k));
  STD_TORCH_CHECK(1 <= q.size(3) && q.size(3) <= kMaxD, "q must have 1 to ", kMaxD,
                  " columns, the last dimension, got ", q.size(3));
  int64_t most = INT32_MAX - 256;  // kernels count with int, up to a tile past the end
  STD_TORCH_CHECK(q.size(2) <= most && k.size(2) <= most, "q and k must have at most ",
                  most, " tokens, got ", q.size(2), " and ", k.size(2));
  return {q.size(0) * q.size(1), k.size(1) > 0 ? int(q.size(1) / k.size(1)) : 1,
          int(q.size(2)), int(k.size(2)), int(q.size(3))};
}

inline double checked_scale(double scale) {
  STD_TORCH_CHECK(scale > 0 && std::isfinite(scale),
                  "scale must be a positive number, got ", scale,
                  "; change the signs in q for a negative one");
  return scale;
}

// Calls run with what scores are.
template <typename Run>
void with_scale(double scale, double softcap, Run run) {
  STD_TORCH_CHECK(softcap >= 0 && std::isfinite(softcap),
                  "softcap must be 0, for none, or a positive number, got ", softcap);
  if (softcap == 0) return run(Scaled{float(scale * kLog2E)});
  run(Capped{float(softcap * kLog2E), float(2 * kLog2E * scale / softcap)});
}

// A window whose ends count from where `aligned` says.
inline Band window(const Sizes& size, bool causal, std::optional<int64_t> left,
                   std::optional<int64_t> right) {
  STD_TORCH_CHECK(!causal,
                  "causal must be False with a window or starts, got True; "
                  "window_right=0 is causal, aligned to the last key");
  STD_TORCH_CHECK(left.value_or(0) >= 0 && right.value_or(0) >= 0,
                  "window_left and window_right must be 0 or more, or None, got ",
                  left.value_or(0), " and ", right.value_or(0));
  int64_t all = int64_t(size.tokens) + size.tokens_kv;
  STD_TORCH_CHECK(all <= INT32_MAX / 4,
                  "q and k must have fewer tokens for a window, got ", size.tokens,
                  " and ", size.tokens_kv);
  auto bound = [&](std::optional<int64_t> keys) {
    return int(std::min(keys.value_or(all), all));
  };
  return {0, 0, bound(left), bound(right)};
}

// The same mask as a window, for kernels that are not built for both.
inline Band as_band(const Band& mask, const Sizes&) { return mask; }
inline Band as_band(const Mask& mask, const Sizes& size) {
  std::optional<int64_t> after;
  if (mask.causal) after = 0;
  Band band = window(size, false, {}, after);
  return {mask.tokens, mask.tokens_kv, band.before, band.after};
}

// Calls run with the mask: a Band for a window.
template <typename Run>
void with_mask(const Sizes& size, bool causal, std::optional<int64_t> left,
               std::optional<int64_t> right, Run run) {
  if (!left && !right) return run(Mask{size.tokens, size.tokens_kv, causal});
  run(window(size, causal, left, right).aligned(size.tokens, size.tokens_kv));
}

inline unsigned grid_of(int64_t blocks) {
  STD_TORCH_CHECK(blocks <= INT32_MAX, "q and k must need fewer than 2^31 blocks, got ",
                  blocks, "; pass fewer heads at a time");
  return static_cast<unsigned>(blocks);
}

inline ScalarType wide_dtype(const Tensor& t) {
  return t.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

// Checks attention's results for a checked q, and their gradients.
inline void check_results(const Tensor& grad, const Tensor& grad_logsumexp,
                          const Tensor& q, const Tensor& out, const Tensor& logsumexp,
                          bool strided = false) {
  ladder::check_input(grad, "grad", q.scalar_type(), strided);
  ladder::check_input(out, "out", q.scalar_type(), strided);
  ladder::check_input(grad_logsumexp, "grad_logsumexp", wide_dtype(q));
  ladder::check_input(logsumexp, "logsumexp", wide_dtype(q));
  ladder::check_same(grad, "grad", q, "q");
  ladder::check_same(out, "out", q, "q");
  ladder::check_same(grad_logsumexp, "grad_logsumexp", logsumexp, "logsumexp");
  STD_TORCH_CHECK(
      logsumexp.dim() == 3 && logsumexp.numel() == q.size(0) * q.size(1) * q.size(2),
      "logsumexp must have a value for each row of q, got shapes ",
      ladder::shape_of(logsumexp), " and ", ladder::shape_of(q));
}

// Tensor cores' kernels copy 16 bytes at a time. A tensor that PyTorch allocates begins
// at such an address.
inline Tensor aligned(const Tensor& t) {
  return ladder::aligned_to_16(t.const_data_ptr()) ? t : torch::stable::clone(t);
}

// Elements from one neighbour of a dimension to the next: of a row, where there is one.
inline int64_t stride(const Tensor& t, int dimension) {
  return t.size(dimension) > 1 ? t.stride(dimension) : t.size(3);
}

struct Strides {
  int64_t batch, head, token;
};
inline Strides strides(const Tensor& t) {
  return {stride(t, 0), stride(t, 1), stride(t, 2)};
}

// t, or a contiguous copy if its rows' elements do not lie side by side, or rows do not
// begin at multiples of 16 bytes. A tensor map can describe it.
inline Tensor with_rows(const Tensor& t) {
  bool fits = t.stride(3) == 1;
  for (int i = 0; i < 3; ++i) fits = fits && stride(t, i) > 0 && stride(t, i) % 8 == 0;
  return aligned(fits ? t : torch::stable::contiguous(t));
}

// Checks the scale, and calls launch(q, k, v, out, logsumexp, scale) where there is
// something to compute. Returns the results.
template <typename Launch>
std::tuple<Tensor, Tensor> run_attention(const Tensor& given_q, const Tensor& given_k,
                                         const Tensor& given_v,
                                         std::optional<double> given_scale,
                                         Launch launch) {
  double scale =
      checked_scale(given_scale.value_or(1 / std::sqrt(double(given_q.size(3)))));
  auto guard = on_device_of(given_q);
  Tensor q = with_rows(given_q), k = with_rows(given_k), v = with_rows(given_v);
  Tensor out = torch::stable::empty_like(q);  // and q's order of dimensions
  Tensor logsumexp =
      torch::stable::new_empty(q, {q.size(0), q.size(1), q.size(2)}, ScalarType::Float);
  if (q.numel() == 0) return {out, logsumexp};  // a grid of 0 blocks is an error
  if (k.size(2) == 0)
    return {torch::stable::zero_(out), torch::stable::fill_(logsumexp, -INFINITY)};
  launch(q, k, v, out, logsumexp, scale);
  return {out, logsumexp};
}

template <typename Kernel>
void allow_shared(Kernel kernel, int bytes) {
  STD_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

template <typename T>
const T* data(const Tensor& t) {
  return static_cast<const T*>(t.const_data_ptr());
}
template <typename T>
T* data(Tensor& t) {
  return static_cast<T*>(t.mutable_data_ptr());
}

}  // namespace ladder
