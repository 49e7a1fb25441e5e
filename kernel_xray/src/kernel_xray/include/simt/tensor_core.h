// tensor_core.h: sums of products of __half and __nv_bfloat16 (tensor_core_sum.h), and how the lanes of a warp share
// their elements.
#pragma once

#include "../cuda_bf16.h"
#include "../cuda_fp16.h"
#include "tensor_core_sum.h"

namespace simt {

// Named conversions, because the implicit ones can be switched off.
SIMT_NOT_TRACED inline float widened(float x) { return x; }
SIMT_NOT_TRACED inline float widened(__half x) { return __half2float(x); }
SIMT_NOT_TRACED inline float widened(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
struct NarrowFormat16 {
  static constexpr int kBits = 16;
  SIMT_NOT_TRACED static uint32_t bits(T value) {
    uint16_t result;
    __builtin_memcpy(&result, &value, 2);
    return result;
  }
  SIMT_NOT_TRACED static float widened(T value) { return ::simt::widened(value); }
};
template <>
struct NarrowFormat<__half> : NarrowFormat16<__half> {
  static constexpr int kFraction = 10, kBias = 15;
};
template <>
struct NarrowFormat<__nv_bfloat16> : NarrowFormat16<__nv_bfloat16> {
  static constexpr int kFraction = 7, kBias = 127;
};

SIMT_NOT_TRACED inline void round_sum(const TensorCoreSum& from, __half& to) {
  to = from.is_special ? __float2half(from.special)
                       : __double2half(__builtin_ldexp(static_cast<double>(from.sum), from.exponent));
}

}  // namespace simt
