// ptx_arithmetic.h: arithmetic of inline PTX, for integers and floating point.
//
// Integers wrap around. float and double are rounded once, in the direction that the instruction names; 16-bit types
// are computed in float and rounded once (narrow_formats.h). The approximations of float (ex2.approx, tanh.approx
// ...) have errors of the documented size (approximations.h); those of 16-bit types are rounded once more. A division by zero gives ones. NaN results are the host's.
#pragma once

#include "conversions.h"
#include "fast_maths.h"
#include "intrinsics.h"
#include "ptx_registers.h"

namespace simt::ptx {

// ---------------------------------------------------------------------------------------------------------------
// One floating-point operation: inputs and result flushed, rounded and saturated as the flags say

template <unsigned flags, typename T>
SIMT_PTX T flushed(T x) {
  if constexpr ((flags & kFtz) && std::is_same_v<T, float>)
    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
  else
    return x;
}
template <unsigned flags, typename T>
SIMT_PTX T finished(T x) {
  if constexpr (flags & kRelu) x = x > 0 || x != x ? x : T(0);
  if constexpr (flags & kSat) x = x > 0 ? (x < 1 ? x : T(1)) : T(0);
  return flushed<flags>(x);
}

template <typename T, typename Operation>
T rounded_toward(Round round, Operation operation, T a) {
  return detail::rounded<T>(round, [&](auto& x, auto&, auto&) -> T { return operation(T(x)); }, a);
}
template <typename T, typename Operation>
T rounded_toward(Round round, Operation operation, T a, T b) {
  return detail::rounded<T>(round, [&](auto& x, auto& y, auto&) -> T { return operation(T(x), T(y)); }, a, b);
}
template <typename T, typename Operation>
T rounded_toward(Round round, Operation operation, T a, T b, T c) {
  return detail::rounded<T>(
      round, [&](auto& x, auto& y, auto& z) -> T { return operation(T(x), T(y), T(z)); }, a, b, c);
}

template <unsigned flags, typename Operation, typename... T>
SIMT_PTX float evaluate(Operation operation, float a, T... more) {
  constexpr Round round = round_of(flags);
  if constexpr (round == Round::nearest)
    return finished<flags>(float(operation(flushed<flags>(a), flushed<flags>(more)...)));
  return finished<flags>(rounded_toward(round, operation, flushed<flags>(a), flushed<flags>(more)...));
}
template <unsigned flags, typename Operation, typename... T>
SIMT_PTX double evaluate(Operation operation, double a, T... more) {
  constexpr Round round = round_of(flags);
  if constexpr (round == Round::nearest) return operation(a, more...);
  return rounded_toward(round, operation, a, more...);
}
template <unsigned flags, typename Operation, typename Format, typename... T>
SIMT_PTX Narrow<Format> evaluate(Operation operation, Narrow<Format> a, T... more) {
  const auto part = [](float x) {
    constexpr bool flushes = (flags & kFtz) && std::is_same_v<Format, Binary16>;
    return flushes && __builtin_fabsf(x) < 0x1p-14f ? __builtin_copysignf(0, x) : x;
  };
  const float result = operation(part(Format::decode(a.bits)), part(Format::decode(more.bits))...);
  return {Format::encode(part(finished<flags>(result)))};
}
template <unsigned flags, typename Operation, typename Element, typename... T>
SIMT_PTX Pair<Element> evaluate(Operation operation, Pair<Element> a, T... more) {
  return {evaluate<flags>(operation, a.low, more.low...), evaluate<flags>(operation, a.high, more.high...)};
}

// ---------------------------------------------------------------------------------------------------------------
// The operations, for every type that has them. Integers are computed in 64 bits and cut.

template <typename T>
SIMT_PTX T minimum(T a, T b) {  // of a number and NaN: the number; -0 is below +0
  if (a != a) return b;
  if (a == 0 && b == 0) return __builtin_signbit(a) ? a : b;
  return b != b || a < b ? a : b;
}
template <typename T>
SIMT_PTX T absolute(T x) {
  return __builtin_copysign(x, T(1));
}
// The smaller or, of negated operands, the larger one.
template <unsigned flags, typename T>
SIMT_PTX T extreme(T sign, T x, T y) {
  if constexpr (flags & kAbs) {
    const bool negative = (flags & kXorSign) && __builtin_signbit(x) != __builtin_signbit(y);
    const T size = extreme<flags & kNaN>(sign, absolute(x), absolute(y));
    return negative ? -size : size;
  }
  if ((flags & kNaN) && x != x) return x;
  if ((flags & kNaN) && y != y) return y;
  return sign * minimum(sign * x, sign * y);
}
SIMT_PTX float product(float a, float b) { return __fmul_rn(a, b); }
SIMT_PTX double product(double a, double b) { return __dmul_rn(a, b); }
SIMT_PTX float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SIMT_PTX double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
SIMT_PTX float root(float x) { return __builtin_sqrtf(x); }
SIMT_PTX double root(double x) { return __builtin_sqrt(x); }
SIMT_PTX float reciprocal_root(float x) { return approximate::reciprocal_root(x); }
SIMT_PTX double reciprocal_root(double x) { return 1 / __builtin_sqrt(x); }

// op_name for two operands: one expression for integers (of s and t, or of x and y in 64 bits), one for floating point.
// Where an operation has only one of the two, no rule reaches the other.
#define SIMT_PTX_BINARY(name, whole, real)                                                                    \
  template <typename T, unsigned flags, typename D, typename A, typename B>                                   \
  SIMT_PTX void op_##name(D&& d, const A& a, const B& b) {                                                    \
    if constexpr (std::is_integral_v<T>) {                                                                    \
      [[maybe_unused]] const T s = get<T>(a), t = get<T>(b);                                                  \
      [[maybe_unused]] const auto x = static_cast<uint64_t>(s), y = static_cast<uint64_t>(t);                 \
      put<T>(d, static_cast<T>(whole));                                                                       \
    } else {                                                                                                  \
      put<T>(d, evaluate<flags>([](auto x, [[maybe_unused]] auto y) { return real; }, get<T>(a), get<T>(b))); \
    }                                                                                                         \
  }
// 32-bit integers may saturate; no type of that kind has more bits.
template <typename T, unsigned flags>
constexpr T clamped(int64_t x) {
  if constexpr (flags & kSat) {
    if (x > std::numeric_limits<T>::max()) return std::numeric_limits<T>::max();
    if (x < std::numeric_limits<T>::min()) return std::numeric_limits<T>::min();
  }
  return static_cast<T>(x);
}
SIMT_PTX_BINARY(add, (clamped<T, flags>(static_cast<int64_t>(x + y))), x + y)
SIMT_PTX_BINARY(sub, (clamped<T, flags>(static_cast<int64_t>(x - y))), x - y)
SIMT_PTX_BINARY(min, (s < t ? s : t), extreme<flags>(decltype(x)(1), x, y))
SIMT_PTX_BINARY(max, (s > t ? s : t), extreme<flags>(decltype(x)(-1), x, y))
SIMT_PTX_BINARY(mul, x* y, product(x, y))
SIMT_PTX_BINARY(mul_lo, x* y, x)
SIMT_PTX_BINARY(copysign, x, __builtin_copysign(y, x))
SIMT_PTX_BINARY(rem, (t == 0 ? T(~T(0)) : t == T(-1) && std::is_signed_v<T> ? T(0) : T(s % t)), x)
SIMT_PTX_BINARY(div,
                (t == 0                              ? T(~T(0))
                 : t == T(-1) && std::is_signed_v<T> ? T(0 - x)
                                                     : T(s / t)),
                (flags & kApprox ? __fdividef(x, y) : x / y))
#undef SIMT_PTX_BINARY

#define SIMT_PTX_UNARY(name, whole, real)                                 \
  template <typename T, unsigned flags, typename D, typename A>           \
  SIMT_PTX void op_##name(D&& d, const A& a) {                            \
    if constexpr (std::is_integral_v<T>) {                                \
      [[maybe_unused]] const auto x = static_cast<uint64_t>(get<T>(a));   \
      put<T>(d, static_cast<T>(whole));                                   \
    } else {                                                              \
      put<T>(d, evaluate<flags>([](auto x) { return real; }, get<T>(a))); \
    }                                                                     \
  }
SIMT_PTX_UNARY(abs, (static_cast<int64_t>(x) < 0 ? 0 - x : x), absolute(x))
SIMT_PTX_UNARY(neg, 0 - x, -x)
SIMT_PTX_UNARY(rcp, x, (flags & kApprox ? approximate::reciprocal(x) : 1 / x))
SIMT_PTX_UNARY(sqrt, x, (flags & kApprox ? approximate::root(x) : root(x)))
SIMT_PTX_UNARY(rsqrt, x, reciprocal_root(x))
SIMT_PTX_UNARY(sin, x, approximate::sin(x))
SIMT_PTX_UNARY(cos, x, approximate::cos(x))
SIMT_PTX_UNARY(lg2, x, approximate::log2(x))
SIMT_PTX_UNARY(ex2, x, approximate::exp2(x))
SIMT_PTX_UNARY(tanh, x, approximate::tanh(x))
#undef SIMT_PTX_UNARY

#define SIMT_PTX_OF_THREE(name)                                                         \
  template <typename T, unsigned flags, typename D, typename A, typename B, typename C> \
  SIMT_PTX void op_##name(D&& d, const A& a, const B& b, const C& c) {                  \
    Bits<sizeof(T)> first{};                                                            \
    op_##name<T, flags>(first, a, b);                                                   \
    op_##name<T, flags>(d, first, c);                                                   \
  }
SIMT_PTX_OF_THREE(min)
SIMT_PTX_OF_THREE(max)
#undef SIMT_PTX_OF_THREE

template <typename T, unsigned flags, typename D, typename A, typename B, typename C>
SIMT_PTX void op_fma(D&& d, const A& a, const B& b, const C& c) {
  const auto once = [](auto x, auto y, auto z) {
    if constexpr (is_narrow<T>)
      return detail::fused_multiply_add(x, y, z);
    else
      return fused(x, y, z);
  };
  put<T>(d, evaluate<flags>(once, get<T>(a), get<T>(b), get<T>(c)));
}
template <typename T, unsigned flags, typename D, typename A, typename B, typename C>
SIMT_PTX void op_mad(D&& d, const A& a, const B& b, const C& c) {
  op_fma<T, flags>(d, a, b, c);
}

#define SIMT_PTX_TEST(name, condition)                                                     \
  template <typename T, unsigned flags, typename D, typename A>                            \
  SIMT_PTX void op_testp_##name(D&& d, const A& a) {                                       \
    [[maybe_unused]] const T least = sizeof(T) == 4 ? T(0x1p-126f) : T(0x1p-1022);         \
    [[maybe_unused]] const T most = T(__builtin_inf()), x = get<T>(a), size = absolute(x); \
    put<bool>(d, condition);                                                               \
  }
SIMT_PTX_TEST(finite, size < most)
SIMT_PTX_TEST(infinite, size == most)
SIMT_PTX_TEST(number, x == x)
SIMT_PTX_TEST(notanumber, x != x)
SIMT_PTX_TEST(normal, size >= least && size < most)
SIMT_PTX_TEST(subnormal, size > 0 && size < least)
#undef SIMT_PTX_TEST

// ---------------------------------------------------------------------------------------------------------------
// Products of integers, and carry chains

template <typename T>
using Double = std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 2, int32_t, int64_t>,
                                  std::conditional_t<sizeof(T) == 2, uint32_t, uint64_t>>;

template <bool high, typename T>
SIMT_PTX T half_product(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  const auto whole =
      static_cast<unsigned __int128>(static_cast<Wide>(a)) * static_cast<unsigned __int128>(static_cast<Wide>(b));
  return static_cast<T>(high ? whole >> (8 * sizeof(T)) : whole);
}

template <typename T, bool in, bool out, typename D>
SIMT_PTX void add_with_carry(D&& d, T a, T b) {
  using U = std::make_unsigned_t<T>;
  const unsigned __int128 sum = static_cast<unsigned __int128>(U(a)) + U(b) + (in ? carry() : false);
  if constexpr (out) set_carry(sum >> (8 * sizeof(T)) & 1);
  put<T>(d, static_cast<T>(sum));
}
template <typename T, bool in, bool out, typename D>
SIMT_PTX void subtract_with_borrow(D&& d, T a, T b) {
  using U = std::make_unsigned_t<T>;
  const unsigned __int128 difference = static_cast<unsigned __int128>(U(a)) - U(b) - (in ? carry() : false);
  if constexpr (out) set_carry(difference >> (8 * sizeof(T)) & 1);
  put<T>(d, static_cast<T>(difference));
}

#define SIMT_PTX_CHAIN(suffix, in_add, in_sub, carry_in, carry_out)         \
  template <typename T, unsigned flags, typename D, typename A, typename B> \
  SIMT_PTX void op_##in_add##suffix(D&& d, const A& a, const B& b) {        \
    add_with_carry<T, carry_in, carry_out>(d, get<T>(a), get<T>(b));        \
  }                                                                         \
  template <typename T, unsigned flags, typename D, typename A, typename B> \
  SIMT_PTX void op_##in_sub##suffix(D&& d, const A& a, const B& b) {        \
    subtract_with_borrow<T, carry_in, carry_out>(d, get<T>(a), get<T>(b));  \
  }
SIMT_PTX_CHAIN(_cc, add, sub, false, true)
SIMT_PTX_CHAIN(, addc, subc, true, false)
SIMT_PTX_CHAIN(_cc, addc, subc, true, true)
#undef SIMT_PTX_CHAIN

#define SIMT_PTX_MAD(name, high, carry_in, carry_out)                                               \
  template <typename T, unsigned flags, typename D, typename A, typename B, typename C>             \
  SIMT_PTX void op_##name(D&& d, const A& a, const B& b, const C& c) {                              \
    add_with_carry<T, carry_in, carry_out>(d, half_product<high>(get<T>(a), get<T>(b)), get<T>(c)); \
  }
SIMT_PTX_MAD(mad_lo, false, false, false)
SIMT_PTX_MAD(mad_hi, true, false, false)
SIMT_PTX_MAD(mad_lo_cc, false, false, true)
SIMT_PTX_MAD(mad_hi_cc, true, false, true)
SIMT_PTX_MAD(madc_lo, false, true, false)
SIMT_PTX_MAD(madc_hi, true, true, false)
SIMT_PTX_MAD(madc_lo_cc, false, true, true)
SIMT_PTX_MAD(madc_hi_cc, true, true, true)
#undef SIMT_PTX_MAD

template <typename T, unsigned flags, typename D, typename A, typename B>
SIMT_PTX void op_mul_hi(D&& d, const A& a, const B& b) {
  put<T>(d, half_product<true>(get<T>(a), get<T>(b)));
}
template <typename T, unsigned flags, typename D, typename A, typename B>
SIMT_PTX void op_mul_wide(D&& d, const A& a, const B& b) {
  put<Double<T>>(d, half_product<false>(Double<T>(get<T>(a)), Double<T>(get<T>(b))));
}
template <typename T, unsigned flags, typename D, typename A, typename B, typename C>
SIMT_PTX void op_mad_wide(D&& d, const A& a, const B& b, const C& c) {
  using W = Double<T>;
  add_with_carry<W, false, false>(d, half_product<false>(W(get<T>(a)), W(get<T>(b))), get<W>(c));
}
template <typename T, unsigned flags, typename D, typename A, typename B, typename C>
SIMT_PTX void op_sad(D&& d, const A& a, const B& b, const C& c) {
  const T x = get<T>(a), y = get<T>(b);
  const uint64_t distance = x < y ? uint64_t(y) - uint64_t(x) : uint64_t(x) - uint64_t(y);
  put<T>(d, static_cast<T>(uint64_t(get<T>(c)) + distance));
}

// Dot products of packed bytes: dp4a, and dp2a with two 16-bit elements of a. Signed if one factor is.
#define SIMT_PTX_DOT(name, bits, count, first)                                                               \
  template <typename TA, typename TB, unsigned flags, typename D, typename A, typename B, typename C>        \
  SIMT_PTX void op_##name(D&& d, const A& a, const B& b, const C& c) {                                       \
    using E = std::conditional_t<std::is_signed_v<TA>, int##bits##_t, uint##bits##_t>;                       \
    using F = std::conditional_t<std::is_signed_v<TB>, int8_t, uint8_t>;                                     \
    put<uint32_t>(d, detail::dot<E, F, count>(get<uint32_t>(a), get<uint32_t>(b), get<uint32_t>(c), first)); \
  }
SIMT_PTX_DOT(dp4a, 8, 4, 0)
SIMT_PTX_DOT(dp2a_lo, 16, 2, 0)
SIMT_PTX_DOT(dp2a_hi, 16, 2, 2)
#undef SIMT_PTX_DOT

}  // namespace simt::ptx
