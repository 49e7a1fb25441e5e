// bits.h: reading a value's bits as another type, and rounding in a chosen direction.
//
// Directed rounding switches the processor's rounding mode around one operation on volatile operands, so that the
// compiler can neither fold the operation nor move it. That costs some tens of nanoseconds; only the rarely used
// `_rz`, `_ru` and `_rd` intrinsics pay it.
#pragma once

#include <fenv.h>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace simt {

template <typename To, typename From>
inline To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "both types must have the same size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

enum class Round { nearest, zero, up, down };

namespace detail {

inline int rounding_mode(Round round) {
  if (round == Round::zero) return FE_TOWARDZERO;
  return round == Round::up ? FE_UPWARD : round == Round::down ? FE_DOWNWARD : FE_TONEAREST;
}

// operation(a, b, c) under the given rounding mode; the operands arrive as volatile references.
template <typename Result, typename Operation, typename A, typename B = int, typename C = int>
__attribute__((noinline)) Result rounded(Round round, Operation operation, A a_, B b_ = 0, C c_ = 0) {
  volatile A a = a_;
  volatile B b = b_;
  volatile C c = c_;
  const int before = fegetround();
  fesetround(rounding_mode(round));
  volatile Result result = operation(a, b, c);
  fesetround(before);
  return result;
}

#define SIMT_TO_INTEGRAL(T, suffix)                              \
  inline T to_integral(T x, Round round) {                       \
    if (round == Round::zero) return __builtin_trunc##suffix(x); \
    if (round == Round::up) return __builtin_ceil##suffix(x);    \
    if (round == Round::down) return __builtin_floor##suffix(x); \
    return __builtin_rint##suffix(x);                            \
  }
SIMT_TO_INTEGRAL(float, f)
SIMT_TO_INTEGRAL(double, )
#undef SIMT_TO_INTEGRAL

// Floating point to integer as the GPU converts: out of range saturates; NaN gives 0, or only the top bit where the
// source or the result has 64 bits.
template <typename To, typename From>
inline To to_integer(From x, Round round) {
  using Limits = std::numeric_limits<To>;
  if (x != x) {
    using Unsigned = std::make_unsigned_t<To>;
    const bool wide = sizeof(From) == 8 || sizeof(To) == 8;
    return wide ? static_cast<To>(Unsigned(1) << (8 * sizeof(To) - 1)) : To(0);
  }
  const From whole = to_integral(x, round);
  const From end = static_cast<From>(uint64_t(1) << (Limits::digits - 1)) * 2;  // the first value that is too large
  if (whole >= end) return Limits::max();
  if (whole <= static_cast<From>(Limits::min())) return Limits::min();
  return static_cast<To>(whole);
}

}  // namespace detail
}  // namespace simt
