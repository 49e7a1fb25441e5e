// hopper_epilogue.h: what matmul_cluster does to the sums of a tile while the tensor
// cores multiply the next one.
#pragma once

#include <cstring>

#include "gelu.h"
#include "hopper.h"

namespace hopper {

// Changes two neighbouring sums, rounded to bfloat16, before they are stored in c.
// of_columns: what it needs for these two columns, which is loaded before the products
// that it runs beside, so that it does not wait for memory. A panel is stored in
// kSubtiles subtiles, each during other products, so that much arithmetic does not keep
// the tensor cores waiting. kSaves: whether the sums themselves are stored too. This
// one changes nothing.
struct Identity {
  static constexpr int kSubtiles = 1;
  static constexpr bool kSaves = false;
  struct Nothing {};
  __device__ Nothing of_columns(int) const { return {}; }
  template <typename OfColumns>
  __device__ __nv_bfloat162 operator()(__nv_bfloat162 pair, OfColumns) const {
    return pair;
  }
};

// Two neighbours: a bfloat16 is the upper half of a float.
__device__ inline float2 widened(uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000)};
}

// The epilogue of a pair that is one word.
template <typename Epilogue, typename OfColumns>
__device__ __forceinline__ uint32_t applied(const Epilogue& epilogue, uint32_t word,
                                            OfColumns of_columns) {
  __nv_bfloat162 pair;
  memcpy(&pair, &word, 4);
  pair = epilogue(pair, of_columns);
  memcpy(&word, &pair, 4);
  return word;
}

// gelu(sum + bias), with a bias for each of the n columns. It is computed while a tile
// is stored, since the tensor cores multiply the next one then.
template <bool saves>
struct BiasGelu {
  static constexpr int kSubtiles = 4;
  static constexpr bool kSaves = saves;
  const bfloat16* bias;
  int n;
  // n is even: a pair is in c, or it is not, and then any bias will do. Two of them
  // stay one word until they are used: taking it apart would wait for it.
  __device__ uint32_t of_columns(int column) const {
    return *reinterpret_cast<const uint32_t*>(bias + (column < n ? column : 0));
  }
  __device__ __nv_bfloat162 operator()(__nv_bfloat162 pair, uint32_t of_pair) const {
    uint32_t word;
    memcpy(&word, &pair, 4);
    float2 sum = widened(word), shift = widened(of_pair);
    return __floats2bfloat162_rn(ladder::gelu_tanh_approximate(sum.x + shift.x),
                                 ladder::gelu_tanh_approximate(sum.y + shift.y));
  }
};

}  // namespace hopper
