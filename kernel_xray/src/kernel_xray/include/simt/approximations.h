// approximations.h: what the instructions of a GPU's special function unit give: 2^x, log2, sine, cosine, reciprocals,
// roots and tanh of floats, which the fast intrinsics (fast_maths.h) and inline PTX (ex2.approx) are made of.
//
// The model. Each result is exact up to an error of the documented size, in places the largest: the last bit of 2^x is
// 0, a logarithm between -1 and 1 is a multiple of 2^-23, reciprocals and roots are cut off instead of rounded, tanh has
// 12 significant bits, and sine and cosine multiply their argument by 1 / (2 pi), as a float, before they drop whole
// turns. The same argument gives the same result on every machine with the same C library. Powers of two stay exact.
// A result is NaN, infinite or zero where it is on a GPU, unless stated in fast_maths.h.
//
// The errors stay within the bounds of the PTX ISA 9.0 (August 2025): ex2 2^-22 relative; lg2 2^-22, absolute in (0.5, 2)
// and relative elsewhere; sin and cos 2^-20.5 absolute in [-2 pi, 2 pi]; rcp 1 ULP; rsqrt 2^-22.4 and sqrt 2^-23
// relative; tanh 2^-11 relative.
//
// Deviation: results lie within these bounds and are not those of a GPU, bit for bit.
#pragma once

#include <math.h>

#include <cstdint>

#include "core.h"

namespace simt::approximate {

SIMT_NOT_TRACED inline uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
SIMT_NOT_TRACED inline float of_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// x rounded towards zero
SIMT_NOT_TRACED inline float cut_off(double x) {
  const float nearest = static_cast<float>(x);
  const bool away = __builtin_fabs(static_cast<double>(nearest)) > __builtin_fabs(x);
  return away && __builtin_fabsf(nearest) < __builtin_inff() ? of_bits(bits_of(nearest) - 1) : nearest;
}

SIMT_NOT_TRACED inline void tell_special() {
#ifdef SIMT_TRACED
  special_function();
#endif
}

SIMT_NOT_TRACED inline float exp2(float x) {
  tell_special();
  return of_bits(bits_of(__builtin_exp2f(x)) & ~1u);
}

SIMT_NOT_TRACED inline float log2(float x) {
  tell_special();
  if (x > 0.5f && x < 2) return static_cast<float>(__builtin_rint(__builtin_log2(double(x)) * 0x1p23) * 0x1p-23);
  return of_bits(bits_of(__builtin_log2f(x)) & ~1u);
}

SIMT_NOT_TRACED inline double angle(float x) {  // of the turn that x radians are, without whole turns
  const float turns = cut_off(static_cast<double>(x) * 0.15915494f);
  return static_cast<double>(turns - __builtin_rintf(turns)) * 6.283185307179586;
}
SIMT_NOT_TRACED inline float sin(float x) {
  tell_special();
  return x == 0 ? x : static_cast<float>(__builtin_sin(angle(x)));  // -0 stays
}
SIMT_NOT_TRACED inline float cos(float x) {
  tell_special();
  return static_cast<float>(__builtin_cos(angle(x)));
}

SIMT_NOT_TRACED inline float reciprocal(float x) {
  tell_special();
  return cut_off(1 / static_cast<double>(x));
}
SIMT_NOT_TRACED inline float root(float x) {
  tell_special();
  return cut_off(__builtin_sqrt(static_cast<double>(x)));
}
SIMT_NOT_TRACED inline float reciprocal_root(float x) {
  tell_special();
  return cut_off(1 / __builtin_sqrt(static_cast<double>(x)));
}

// Outside 2^-126 <= |y| <= 2^126, where CUDA documents no bound: 0 for a larger y, the quotient for a smaller one.
SIMT_NOT_TRACED inline float quotient(float x, float y) {
  const float size = __builtin_fabsf(y);
  if (size < 0x1p-126f) return x / y;
  return x * (size > 0x1p126f ? __builtin_copysignf(0, y) : reciprocal(y));
}

SIMT_NOT_TRACED inline float tanh(float x) {
  tell_special();
  constexpr uint32_t dropped = 0xfff;  // of the 23 bits of the fraction
  const float exact = __builtin_tanhf(x);
  return __builtin_fabsf(exact) < 0x1p-126f ? exact : of_bits((bits_of(exact) + dropped / 2 + 1) & ~dropped);
}

}  // namespace simt::approximate
