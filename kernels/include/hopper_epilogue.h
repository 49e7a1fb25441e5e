// hopper_epilogue.h: what a product does to its sums before they are stored in c.
#pragma once

#include <cstring>

#include "gelu.h"
#include "hopper.h"
#include "launch.h"

namespace hopper {

// Two neighbours: a bfloat16 is the upper half of a float.
__device__ inline float2 widened(uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000)};
}
__device__ inline uint32_t word_of(__nv_bfloat162 pair) {
  uint32_t word;
  memcpy(&word, &pair, 4);
  return word;
}
__device__ inline __nv_bfloat162 rounded(float2 x) {
  return __floats2bfloat162_rn(x.x, x.y);
}

// An epilogue changes two sums and rounds them to bfloat16. Two neighbours in a row
// need what of_columns loads for their columns, two in a column what of_column does. It
// is loaded before the products that it runs beside, so that it does not wait for
// memory.
//
// A tile of matmul_cluster waits in 16 bits until the next one is multiplied: waiting()
// is what waits, and stored() what is stored then. A panel is stored in kSubtiles
// subtiles, each during other products, so that much arithmetic does not keep the
// tensor cores waiting. kSaves: whether the sums themselves are stored too.
//
// This one changes nothing.
struct Identity {
  static constexpr int kSubtiles = 1;
  static constexpr bool kSaves = false;
  struct Nothing {};
  __device__ Nothing of_columns(int) const { return {}; }
  __device__ Nothing of_column(int) const { return {}; }
  template <typename Of>
  __device__ __nv_bfloat162 operator()(float2 sums, Of) const {
    return rounded(sums);
  }
  template <typename Of>
  __device__ __nv_bfloat162 waiting(float2 sums, Of) const {
    return rounded(sums);
  }
  template <typename Of>
  __device__ __nv_bfloat162 stored(__nv_bfloat162 pair, Of) const {
    return pair;
  }
};

// gelu(sum + bias), with a bias for each of the n columns. cuBLAS rounds its result
// alone, and so does this. What waits is rounded before too: sum + bias, as eager
// rounds them, or the sum if it is saved.
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
  __device__ uint32_t of_column(int column) const {
    auto* bits = reinterpret_cast<const uint16_t*>(bias);
    return bits[column < n ? column : 0] * 0x10001u;
  }
  __device__ static float2 shifted(float2 sums, uint32_t of_pair) {
    float2 shift = widened(of_pair);
    return {sums.x + shift.x, sums.y + shift.y};
  }
  __device__ static __nv_bfloat162 gelu(float2 z) {
    return __floats2bfloat162_rn(ladder::gelu_tanh_approximate(z.x),
                                 ladder::gelu_tanh_approximate(z.y));
  }
  __device__ __nv_bfloat162 operator()(float2 sums, uint32_t of_pair) const {
    return gelu(shifted(sums, of_pair));
  }
  __device__ __nv_bfloat162 waiting(float2 sums, uint32_t of_pair) const {
    return rounded(saves ? sums : shifted(sums, of_pair));
  }
  __device__ __nv_bfloat162 stored(__nv_bfloat162 pair, uint32_t of_pair) const {
    float2 z = widened(word_of(pair));
    return gelu(saves ? shifted(z, of_pair) : z);
  }
};

// The elements of bias, one for each column of b.
inline const bfloat16* check_bias(const ladder::Tensor& a, const ladder::Tensor& b,
                                  const ladder::Tensor& bias) {
  ladder::check_input(bias, "bias", torch::headeronly::ScalarType::BFloat16);
  STD_TORCH_CHECK(bias.dim() == 1 && b.dim() == 2 && bias.size(0) == b.size(1),
                  "bias must have one element for each column of b, got shapes ",
                  ladder::shape_of(bias), " and ", ladder::shape_of(b));
  ladder::check_same_device(a, "a", bias, "bias");
  auto* data = static_cast<const bfloat16*>(bias.const_data_ptr());
  STD_TORCH_CHECK(reinterpret_cast<uintptr_t>(data) % 4 == 0,
                  "bias must begin at a multiple of 4 bytes; pass bias.clone()");
  STD_TORCH_CHECK(a.dim() != 2 || a.size(1) > 0,
                  "a must have at least one column, got shape ", ladder::shape_of(a));
  return data;
}

// The sums of factors of 8 bits, which are stored as x / scale.
struct Scaled : Identity {
  const float *a, *b;  // the scales
  __device__ float of_columns(int) const { return *a * *b; }
  __device__ float of_column(int) const { return *a * *b; }
  __device__ __nv_bfloat162 operator()(float2 sums, float scale) const {
    return rounded({scale * sums.x, scale * sums.y});
  }
  __device__ __nv_bfloat162 waiting(float2 sums, float scale) const {
    return (*this)(sums, scale);
  }
};

}  // namespace hopper
