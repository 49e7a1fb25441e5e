// fast_maths.h: part of maths.h. CUDA's fast intrinsics, and arithmetic with a rounding mode.
//
// The fast intrinsics are those of a GPU: the instructions that nvcc 13.0 generates for them, each with its documented
// error (approximations.h). So their errors are within the bounds of the CUDA Programming Guide 13.0 (August 2025),
// section "Intrinsic Functions", and grow as there: __expf(x) 2 + floor(|1.173 x|) ULPs, __exp10f(x) 2 + floor(|2.97 x|)
// ULPs; __logf, __log2f and __log10f 2^-21.41, 2^-22 and 2^-24 absolute in [0.5, 2], and 3, 2 and 3 ULPs elsewhere;
// __sinf and __cosf 2^-21.41 and 2^-21.19 absolute in [-pi, pi], and more outside; __fdividef 2 ULPs for |y| from 2^-126
// to 2^126. For a larger y it gives 0, or NaN if x is infinite. Bits may differ from a GPU's; subnormal numbers are kept,
// as without -ftz=true. The directed rounding modes are exact, but slow (bits.h).
#pragma once

#include <math.h>

#include "approximations.h"
#include "bits.h"

// ---------------------------------------------------------------------------------------------------------------
// Fast intrinsics. glibc declares functions of some of these names, with C linkage, but exports none of them; so these
// are defined with C linkage too, always inline. macOS has its own __sincosf and __exp10f.

#define SIMT_FAST extern "C" inline __attribute__((always_inline))
SIMT_FAST float __expf(float x) noexcept { return ::simt::approximate::exp2(x * 1.4426950408889634f); }
SIMT_FAST float __logf(float x) noexcept { return ::simt::approximate::log2(x) * 0.6931471805599453f; }
SIMT_FAST float __log2f(float x) noexcept { return ::simt::approximate::log2(x); }
SIMT_FAST float __log10f(float x) noexcept { return ::simt::approximate::log2(x) * 0.30102999566398120f; }
SIMT_FAST float __sinf(float x) noexcept { return ::simt::approximate::sin(x); }
SIMT_FAST float __cosf(float x) noexcept { return ::simt::approximate::cos(x); }
SIMT_FAST float __tanf(float x) noexcept {
  return ::simt::approximate::quotient(::simt::approximate::sin(x), ::simt::approximate::cos(x));
}
SIMT_FAST float __tanhf(float x) noexcept { return ::simt::approximate::tanh(x); }
SIMT_FAST float __powf(float x, float y) noexcept {  // NaN for negative x, as documented
  return ::simt::approximate::exp2(y * ::simt::approximate::log2(x));
}
#if !defined(__APPLE__)
SIMT_FAST float __exp10f(float x) noexcept { return ::simt::approximate::exp2(x * 3.3219280948873623f); }
SIMT_FAST void __sincosf(float x, float* s, float* c) noexcept {
  *s = ::simt::approximate::sin(x);
  *c = ::simt::approximate::cos(x);
}
#endif
#undef SIMT_FAST

inline float __fdividef(float x, float y) { return ::simt::approximate::quotient(x, y); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }  // NaN becomes 0
inline float __frsqrt_rn(float x) { return static_cast<float>(1 / __builtin_sqrt(double(x))); }

// ---------------------------------------------------------------------------------------------------------------
// Arithmetic with a rounding mode. The _rn forms are the plain operation, which the compiler cannot fuse with another
// one.

#if defined(__x86_64__)
#define SIMT_UNFUSED(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define SIMT_UNFUSED(x) __asm__("" : "+w"(x))
#else
#define SIMT_UNFUSED(x) __asm__("" : "+m"(x))
#endif

#define SIMT_ROUNDED(name, mode, T, parameters, expression, ...) /* a template: costs nothing until used */        \
  template <int = 0>                                                                                               \
  inline T name parameters {                                                                                       \
    return ::simt::detail::rounded<T>(                                                                             \
        ::simt::Round::mode,                                                                                       \
        [](auto& a, [[maybe_unused]] auto& b, [[maybe_unused]] auto& c) -> T { return expression; }, __VA_ARGS__); \
  }
#define SIMT_ARITHMETIC(name, T, parameters, expression, ...)           \
  inline T name##_rn parameters {                                       \
    T result = expression;                                              \
    SIMT_UNFUSED(result);                                               \
    return result;                                                      \
  }                                                                     \
  SIMT_ROUNDED(name##_rz, zero, T, parameters, expression, __VA_ARGS__) \
  SIMT_ROUNDED(name##_ru, up, T, parameters, expression, __VA_ARGS__)   \
  SIMT_ROUNDED(name##_rd, down, T, parameters, expression, __VA_ARGS__)

SIMT_ARITHMETIC(__fadd, float, (float a, float b), a + b, a, b)
SIMT_ARITHMETIC(__fsub, float, (float a, float b), a - b, a, b)
SIMT_ARITHMETIC(__fmul, float, (float a, float b), (a * b), a, b)
SIMT_ARITHMETIC(__fdiv, float, (float a, float b), a / b, a, b)
SIMT_ARITHMETIC(__frcp, float, (float a), 1 / a, a)
SIMT_ARITHMETIC(__fsqrt, float, (float a), __builtin_sqrtf(a), a)
SIMT_ARITHMETIC(__fmaf, float, (float a, float b, float c), __builtin_fmaf(a, b, c), a, b, c)
SIMT_ARITHMETIC(__fmaf_ieee, float, (float a, float b, float c), __builtin_fmaf(a, b, c), a, b, c)
SIMT_ARITHMETIC(__dadd, double, (double a, double b), a + b, a, b)
SIMT_ARITHMETIC(__dsub, double, (double a, double b), a - b, a, b)
SIMT_ARITHMETIC(__dmul, double, (double a, double b), (a * b), a, b)
SIMT_ARITHMETIC(__ddiv, double, (double a, double b), a / b, a, b)
SIMT_ARITHMETIC(__drcp, double, (double a), 1 / a, a)
SIMT_ARITHMETIC(__dsqrt, double, (double a), __builtin_sqrt(a), a)
SIMT_ARITHMETIC(__fma, double, (double a, double b, double c), __builtin_fma(a, b, c), a, b, c)

#undef SIMT_ARITHMETIC
#undef SIMT_ROUNDED
#undef SIMT_UNFUSED
