// maths.h: CUDA's maths functions for float and double, usable without a prefix.
//
// The C library supplies most; this file adds what it lacks, min and max for CUDA's mixed types, the fast intrinsics
// (__expf) and the arithmetic with a rounding mode (__fadd_rz). Results are those of the host's library: they meet
// CUDA's error bounds, but need not agree with a GPU in the last bits. The fast intrinsics and rsqrtf have errors of the
// documented size (approximations.h).
#pragma once

#include <math.h>
#include <stdlib.h>

#include "approximations.h"
#include "bits.h"

// ---------------------------------------------------------------------------------------------------------------
// min and max, for the argument types for which CUDA has them

#define SIMT_MIN_MAX(Result, A, B)                                     \
  inline constexpr Result min(A a, B b) {                              \
    const auto x = static_cast<Result>(a), y = static_cast<Result>(b); \
    return x < y ? x : y;                                              \
  }                                                                    \
  inline constexpr Result max(A a, B b) {                              \
    const auto x = static_cast<Result>(a), y = static_cast<Result>(b); \
    return x > y ? x : y;                                              \
  }
#define SIMT_MIN_MAX_INTEGER(T)                    \
  SIMT_MIN_MAX(T, T, T)                            \
  SIMT_MIN_MAX(unsigned T, unsigned T, unsigned T) \
  SIMT_MIN_MAX(unsigned T, unsigned T, T)          \
  SIMT_MIN_MAX(unsigned T, T, unsigned T)
SIMT_MIN_MAX_INTEGER(int)
SIMT_MIN_MAX_INTEGER(long)
SIMT_MIN_MAX_INTEGER(long long)
#undef SIMT_MIN_MAX_INTEGER
#undef SIMT_MIN_MAX

#define SIMT_MIN_MAX_FLOATING(Result, A, B) /* of a number and NaN: the number */ \
  inline constexpr Result min(A a, B b) { return b != b ? a : a < b ? a : b; }    \
  inline constexpr Result max(A a, B b) { return b != b ? a : a > b ? a : b; }
SIMT_MIN_MAX_FLOATING(float, float, float)
SIMT_MIN_MAX_FLOATING(double, double, double)
SIMT_MIN_MAX_FLOATING(double, float, double)
SIMT_MIN_MAX_FLOATING(double, double, float)
#undef SIMT_MIN_MAX_FLOATING

inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

// ---------------------------------------------------------------------------------------------------------------
// Functions that some C libraries lack. A template never clashes with a C function of the same name and parameters, and
// loses to it in overload resolution, so the library's own function is used where there is one.

#define SIMT_MATHS   \
  template <int = 0> \
  inline
#define SIMT_MATHS_1(name, expression)                    \
  SIMT_MATHS double name(double x) { return expression; } \
  SIMT_MATHS float name##f(float x_) {                    \
    const double x = x_;                                  \
    return static_cast<float>(expression);                \
  }                                                       \
  SIMT_MATHS float name(float x) { return name##f(x); }

SIMT_MATHS double rsqrt(double x) { return 1 / __builtin_sqrt(x); }
SIMT_MATHS float rsqrtf(float x) { return ::simt::approximate::reciprocal_root(x); }
SIMT_MATHS float rsqrt(float x) { return ::simt::approximate::reciprocal_root(x); }
SIMT_MATHS_1(rcbrt, 1 / __builtin_cbrt(x))
SIMT_MATHS_1(exp10, __builtin_pow(10.0, x))
SIMT_MATHS_1(normcdf, 0.5 * __builtin_erfc(x * -0.70710678118654752440))

namespace simt::detail {
// sin and cos of pi x, exact at the multiples of 1/2: reduce to |r| <= 1/4 first.
inline void sin_cos_pi(double x, double* sine, double* cosine) {
  const double quarter = __builtin_rint(2 * x);
  const double r = (x - quarter / 2) * 3.14159265358979323846;
  const double s = __builtin_sin(r), c = __builtin_cos(r);
  switch (static_cast<int>(quarter - 4 * __builtin_floor(quarter / 4))) {
    case 0:
      *sine = s;
      *cosine = c;
      break;
    case 1:
      *sine = c;
      *cosine = -s;
      break;
    case 2:
      *sine = -s;
      *cosine = -c;
      break;
    case 3:
      *sine = -c;
      *cosine = s;
      break;
    default:
      *sine = *cosine = __builtin_nan("");  // NaN and infinity
  }
  if (*sine == 0) *sine = __builtin_copysign(0.0, x);
  if (*cosine == 0) *cosine = 0;  // never -0
}
inline double sin_pi(double x) {
  double s, c;
  sin_cos_pi(x, &s, &c);
  return s;
}
inline double cos_pi(double x) {
  double s, c;
  sin_cos_pi(x, &s, &c);
  return c;
}
}  // namespace simt::detail
SIMT_MATHS_1(sinpi, ::simt::detail::sin_pi(x))
SIMT_MATHS_1(cospi, ::simt::detail::cos_pi(x))

#define SIMT_MATHS_SIN_COS(name, sine_of, cosine_of)     \
  SIMT_MATHS void name(double x, double* s, double* c) { \
    *s = sine_of(x);                                     \
    *c = cosine_of(x);                                   \
  }                                                      \
  SIMT_MATHS void name##f(float x, float* s, float* c) { \
    *s = sine_of##f(x);                                  \
    *c = cosine_of##f(x);                                \
  }                                                      \
  SIMT_MATHS void name(float x, float* s, float* c) { name##f(x, s, c); }
SIMT_MATHS_SIN_COS(sincos, sin, cos)
SIMT_MATHS_SIN_COS(sincospi, sinpi, cospi)
#undef SIMT_MATHS_SIN_COS

SIMT_MATHS double norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
SIMT_MATHS double norm4d(double a, double b, double c, double d) { return hypot(norm3d(a, b, c), d); }
SIMT_MATHS double rhypot(double a, double b) { return 1 / hypot(a, b); }
SIMT_MATHS double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
SIMT_MATHS double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
SIMT_MATHS float norm3df(float a, float b, float c) { return static_cast<float>(norm3d(a, b, c)); }
SIMT_MATHS float norm4df(float a, float b, float c, float d) { return static_cast<float>(norm4d(a, b, c, d)); }
SIMT_MATHS float rhypotf(float a, float b) { return static_cast<float>(rhypot(a, b)); }
SIMT_MATHS float rnorm3df(float a, float b, float c) { return static_cast<float>(rnorm3d(a, b, c)); }
SIMT_MATHS float rnorm4df(float a, float b, float c, float d) { return static_cast<float>(rnorm4d(a, b, c, d)); }
SIMT_MATHS double norm(int count, const double* x) {
  double length = 0;
  for (int i = 0; i < count; ++i) length = hypot(length, x[i]);
  return length;
}
SIMT_MATHS float normf(int count, const float* x) {
  double length = 0;
  for (int i = 0; i < count; ++i) length = hypot(length, double(x[i]));
  return static_cast<float>(length);
}
SIMT_MATHS double rnorm(int count, const double* x) { return 1 / norm(count, x); }
SIMT_MATHS float rnormf(int count, const float* x) { return 1 / normf(count, x); }
inline float fdividef(float x, float y) { return x / y; }

#include "special_functions.inc"

#undef SIMT_MATHS_1
#undef SIMT_MATHS

#include "fast_maths.h"
