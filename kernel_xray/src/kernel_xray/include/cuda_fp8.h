// cuda_fp8.h: __nv_fp8_e4m3 and __nv_fp8_e5m2, numbers of 8 bits, with their pairs, fours and conversions.
//
// A conversion rounds to the nearest value, ties to even. Beyond the largest value it saturates (__NV_SATFINITE, which
// the constructors use) or gives infinity, for which e4m3 has NaN (__NV_NOSAT). NaN becomes 0x7f, the GPU's canonical
// one, whatever its sign; CUDA's code for a double keeps the sign. The e8m0 types are missing.
#pragma once
#define __CUDA_FP8_H__
#define __CUDA_FP8_TYPES_EXIST__

#include "cuda_bf16.h"
#include "cuda_fp16.h"

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;  // the first number is in the low byte
using __nv_fp8x4_storage_t = unsigned;

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace simt {

inline unsigned char to_fp8(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return kind == __NV_E4M3 ? encode_fp8<E4M3>(x, saturate == __NV_SATFINITE)
                           : encode_fp8<E5M2>(x, saturate == __NV_SATFINITE);
}
inline float from_fp8(unsigned char code, __nv_fp8_interpretation_t kind) {
  const float x = kind == __NV_E4M3 ? E4M3::decode(code) : E5M2::decode(code);
  return x != x ? __builtin_nanf("") : x;
}

}  // namespace simt

// ---------------------------------------------------------------------------------------------------------------
// Functions

inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  return {::simt::Binary16::encode(::simt::from_fp8(x, kind))};
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(x), kind).x,
          __nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(x >> 8), kind).x};
}

#define SIMT_TO_FP8(from, T, from2, T2, x_of, y_of)                                                  \
  inline __nv_fp8_storage_t __nv_cvt_##from##_to_fp8(const T x, __nv_saturation_t saturate,          \
                                                     __nv_fp8_interpretation_t kind) {               \
    return ::simt::to_fp8(x_of, saturate, kind);                                                     \
  }                                                                                                  \
  inline __nv_fp8x2_storage_t __nv_cvt_##from2##_to_fp8x2(const T2 pair, __nv_saturation_t saturate, \
                                                          __nv_fp8_interpretation_t kind) {          \
    const T x{pair.x}, y{pair.y};                                                                    \
    return static_cast<__nv_fp8x2_storage_t>(::simt::to_fp8(x_of, saturate, kind) |                  \
                                             ::simt::to_fp8(y_of, saturate, kind) << 8);             \
  }
SIMT_TO_FP8(double, double, double2, double2, x, y)
SIMT_TO_FP8(float, float, float2, float2, x, y)
SIMT_TO_FP8(halfraw, __half_raw, halfraw2, __half2_raw, ::simt::Binary16::decode(x.x), ::simt::Binary16::decode(y.x))
SIMT_TO_FP8(bfloat16raw, __nv_bfloat16_raw, bfloat16raw2, __nv_bfloat162_raw, ::simt::Brain16::decode(x.x),
            ::simt::Brain16::decode(y.x))
#undef SIMT_TO_FP8

// ---------------------------------------------------------------------------------------------------------------
// Types. All conversions are explicit, as CUDA's are; those to integers round towards zero and saturate.

namespace simt {

template <__nv_fp8_interpretation_t kind>
struct Fp8 {
  __nv_fp8_storage_t __x;

  Fp8() = default;
#if !defined(__CUDA_NO_FP8_CONVERSIONS__)
  explicit Fp8(const __half x) : Fp8(widen(x)) {}
  explicit Fp8(const __nv_bfloat16 x) : Fp8(widen(x)) {}
  explicit Fp8(const float x) : __x(to_fp8(x, __NV_SATFINITE, kind)) {}
  explicit Fp8(const double x) : __x(to_fp8(x, __NV_SATFINITE, kind)) {}
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  explicit Fp8(const T x) : Fp8(static_cast<double>(x)) {}
#endif
#if !defined(__CUDA_NO_FP8_CONVERSION_OPERATORS__)
  explicit operator __half() const { return __nv_cvt_fp8_to_halfraw(__x, kind); }
  explicit operator __nv_bfloat16() const { return __float2bfloat16(from_fp8(__x, kind)); }
  explicit operator float() const { return from_fp8(__x, kind); }
  explicit operator double() const { return from_fp8(__x, kind); }
  explicit operator bool() const { return (__x & 0x7fu) != 0; }
  template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  explicit operator T() const {
    return detail::to_integer<T>(from_fp8(__x, kind), Round::zero);
  }
#endif
};

template <__nv_fp8_interpretation_t kind>
struct alignas(2) Fp8x2 {
  __nv_fp8x2_storage_t __x;

  Fp8x2() = default;
#if !defined(__CUDA_NO_FP8_CONVERSIONS__)
  explicit Fp8x2(const __half2 x) : __x(__nv_cvt_halfraw2_to_fp8x2(x, __NV_SATFINITE, kind)) {}
  explicit Fp8x2(const __nv_bfloat162 x) : __x(__nv_cvt_bfloat16raw2_to_fp8x2(x, __NV_SATFINITE, kind)) {}
  explicit Fp8x2(const float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, kind)) {}
  explicit Fp8x2(const double2 x) : __x(__nv_cvt_double2_to_fp8x2(x, __NV_SATFINITE, kind)) {}
#endif
#if !defined(__CUDA_NO_FP8_CONVERSION_OPERATORS__)
  explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, kind); }
  explicit operator float2() const {
    return {from_fp8(static_cast<unsigned char>(__x), kind), from_fp8(static_cast<unsigned char>(__x >> 8), kind)};
  }
#endif
};

template <__nv_fp8_interpretation_t kind>
struct alignas(4) Fp8x4 {
  __nv_fp8x4_storage_t __x;

  Fp8x4() = default;
#if !defined(__CUDA_NO_FP8_CONVERSIONS__)
  explicit Fp8x4(const __half2 low, const __half2 high) : Fp8x4(Fp8x2<kind>(low), Fp8x2<kind>(high)) {}
  explicit Fp8x4(const __nv_bfloat162 low, const __nv_bfloat162 high) : Fp8x4(Fp8x2<kind>(low), Fp8x2<kind>(high)) {}
  explicit Fp8x4(const float4 x) : Fp8x4(Fp8x2<kind>(float2{x.x, x.y}), Fp8x2<kind>(float2{x.z, x.w})) {}
  explicit Fp8x4(const double4 x) : Fp8x4(Fp8x2<kind>(double2{x.x, x.y}), Fp8x2<kind>(double2{x.z, x.w})) {}
  explicit Fp8x4(const double4_16a x) : Fp8x4(Fp8x2<kind>(double2{x.x, x.y}), Fp8x2<kind>(double2{x.z, x.w})) {}
  explicit Fp8x4(const double4_32a x) : Fp8x4(Fp8x2<kind>(double2{x.x, x.y}), Fp8x2<kind>(double2{x.z, x.w})) {}
#endif
#if !defined(__CUDA_NO_FP8_CONVERSION_OPERATORS__)
  explicit operator float4() const {
    const auto byte = [this](int i) { return from_fp8(static_cast<unsigned char>(__x >> 8 * i), kind); };
    return {byte(0), byte(1), byte(2), byte(3)};
  }
#endif

 private:
  Fp8x4(Fp8x2<kind> low, Fp8x2<kind> high) : __x(low.__x | static_cast<unsigned>(high.__x) << 16) {}
};

}  // namespace simt

#define SIMT_FP8(name, Base, kind) \
  struct name : simt::Base<kind> { \
    using Base::Base;              \
  };
SIMT_FP8(__nv_fp8_e4m3, Fp8, __NV_E4M3)
SIMT_FP8(__nv_fp8x2_e4m3, Fp8x2, __NV_E4M3)
SIMT_FP8(__nv_fp8x4_e4m3, Fp8x4, __NV_E4M3)
SIMT_FP8(__nv_fp8_e5m2, Fp8, __NV_E5M2)
SIMT_FP8(__nv_fp8x2_e5m2, Fp8x2, __NV_E5M2)
SIMT_FP8(__nv_fp8x4_e5m2, Fp8x4, __NV_E5M2)
#undef SIMT_FP8
