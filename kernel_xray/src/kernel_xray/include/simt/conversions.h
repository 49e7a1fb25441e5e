// conversions.h: bits as another type, and conversions between integers and floating point with a rounding mode.
//
// A conversion to an integer saturates and maps NaN as the GPU does; a plain C++ cast of such a value is undefined here.
#pragma once

#include "bits.h"

inline int __float_as_int(float x) { return ::simt::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return ::simt::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return ::simt::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return ::simt::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return ::simt::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return ::simt::bit_cast<double>(x); }

inline double __hiloint2double(int high, int low) {
  return ::simt::bit_cast<double>(uint64_t(unsigned(high)) << 32 | unsigned(low));
}
inline int __double2hiint(double x) { return static_cast<int>(::simt::bit_cast<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(::simt::bit_cast<uint64_t>(x)); }

// One function for each rounding mode.
#define SIMT_ROUND_MODES(form, ...) \
  form(_rn, nearest, __VA_ARGS__) form(_rz, zero, __VA_ARGS__) form(_ru, up, __VA_ARGS__) form(_rd, down, __VA_ARGS__)

// Templates, so that they cost no time to compile until they are used.
#define SIMT_TO_INTEGER(suffix, mode, name, From, To)              \
  template <int = 0>                                               \
  inline To name##suffix(From x) {                                 \
    return ::simt::detail::to_integer<To>(x, ::simt::Round::mode); \
  }
// 0 apart: clang converts an unsigned one by a subtraction, which gives -0 when it rounds down.
#define SIMT_FROM_INTEGER(suffix, mode, name, From, To)                                                             \
  template <int = 0>                                                                                                \
  inline To name##suffix(From x) {                                                                                  \
    if (::simt::Round::mode == ::simt::Round::nearest || x == 0) return static_cast<To>(x);                         \
    return ::simt::detail::rounded<To>(                                                                             \
        ::simt::Round::mode, [](volatile From& a, volatile int&, volatile int&) { return static_cast<To>(a); }, x); \
  }

SIMT_ROUND_MODES(SIMT_TO_INTEGER, __float2int, float, int)
SIMT_ROUND_MODES(SIMT_TO_INTEGER, __float2uint, float, unsigned)
SIMT_ROUND_MODES(SIMT_TO_INTEGER, __float2ll, float, long long)
SIMT_ROUND_MODES(SIMT_TO_INTEGER, __float2ull, float, unsigned long long)
SIMT_ROUND_MODES(SIMT_TO_INTEGER, __double2int, double, int)
SIMT_ROUND_MODES(SIMT_TO_INTEGER, __double2uint, double, unsigned)
SIMT_ROUND_MODES(SIMT_TO_INTEGER, __double2ll, double, long long)
SIMT_ROUND_MODES(SIMT_TO_INTEGER, __double2ull, double, unsigned long long)
SIMT_ROUND_MODES(SIMT_FROM_INTEGER, __int2float, int, float)
SIMT_ROUND_MODES(SIMT_FROM_INTEGER, __uint2float, unsigned, float)
SIMT_ROUND_MODES(SIMT_FROM_INTEGER, __ll2float, long long, float)
SIMT_ROUND_MODES(SIMT_FROM_INTEGER, __ull2float, unsigned long long, float)
SIMT_ROUND_MODES(SIMT_FROM_INTEGER, __ll2double, long long, double)
SIMT_ROUND_MODES(SIMT_FROM_INTEGER, __ull2double, unsigned long long, double)
SIMT_ROUND_MODES(SIMT_FROM_INTEGER, __double2float, double, float)
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

#undef SIMT_ROUND_MODES
#undef SIMT_TO_INTEGER
#undef SIMT_FROM_INTEGER
