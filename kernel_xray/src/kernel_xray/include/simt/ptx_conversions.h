// ptx_conversions.h: comparisons, selections and conversions of inline PTX.
//
// A conversion rounds once, and to an integer it saturates as on a GPU (bits.h). Deviation: NaN results are the host's.
#pragma once

#include "ptx_arithmetic.h"

namespace simt::ptx {

// ---------------------------------------------------------------------------------------------------------------
// Comparisons and selections. A comparison with NaN is false, unless its name ends in u; `ne` too.

#define SIMT_PTX_COMPARISON(name, of_nan, condition) \
  struct name {                                      \
    template <typename T>                            \
    SIMT_PTX static bool of(T x, T y) {              \
      return x != x || y != y ? of_nan : condition;  \
    }                                                \
  };
#define SIMT_PTX_COMPARISONS(name, symbol)         \
  SIMT_PTX_COMPARISON(t_##name, false, x symbol y) \
  SIMT_PTX_COMPARISON(t_##name##u, true, x symbol y)
SIMT_PTX_COMPARISONS(eq, ==)
SIMT_PTX_COMPARISONS(ne, !=)
SIMT_PTX_COMPARISONS(lt, <)
SIMT_PTX_COMPARISONS(le, <=)
SIMT_PTX_COMPARISONS(gt, >)
SIMT_PTX_COMPARISONS(ge, >=)
SIMT_PTX_COMPARISON(t_num, false, true)
SIMT_PTX_COMPARISON(t_nan, true, false)
#undef SIMT_PTX_COMPARISONS
#undef SIMT_PTX_COMPARISON
using t_lo = t_lt;
using t_ls = t_le;
using t_hi = t_gt;
using t_hs = t_ge;

template <typename How, typename T, unsigned flags, typename A, typename B>
SIMT_PTX bool compared(const A& a, const B& b) {
  const T x = get<T>(a), y = get<T>(b);
  if constexpr (std::is_arithmetic_v<T>)
    return How::of(flushed<flags>(x), flushed<flags>(y));
  else if constexpr (std::is_same_v<T, t_f16>)
    return How::of(Binary16::decode(x.bits), Binary16::decode(y.bits));
  else
    return How::of(Brain16::decode(x.bits), Brain16::decode(y.bits));
}

template <typename How, typename T, unsigned flags, typename P, typename Q, typename A, typename B>
SIMT_PTX void op_setp(P&& p, Q&& q, const A& a, const B& b) {
  const bool result = compared<How, T, flags>(a, b);
  put<bool>(p, result);
  put<bool>(q, !result);
}
#define SIMT_PTX_SETP(name, operation)                                                                \
  template <typename How, typename T, unsigned flags, typename P, typename Q, typename A, typename B> \
  SIMT_PTX void op_setp_##name(P&& p, Q&& q, const A& a, const B& b, bool c) {                        \
    const bool result = compared<How, T, flags>(a, b);                                                \
    put<bool>(p, static_cast<bool>(result operation c));                                              \
    put<bool>(q, static_cast<bool>(!result operation c));                                             \
  }
SIMT_PTX_SETP(and, &)
SIMT_PTX_SETP(or, |)
SIMT_PTX_SETP(xor, ^)
#undef SIMT_PTX_SETP

template <typename How, typename To, typename T, unsigned flags, typename D, typename A, typename B>
SIMT_PTX void op_set(D&& d, const A& a, const B& b) {  // 1.0, or all ones
  const bool result = compared<How, T, flags>(a, b);
  put<To>(d, std::is_same_v<To, float> ? To(result) : To(result ? ~uint32_t{0} : 0));
}

template <typename T, unsigned flags, typename D, typename A, typename B>
SIMT_PTX void op_selp(D&& d, const A& a, const B& b, bool chosen) {
  const T x = get<T>(a), y = get<T>(b);
  put<T>(d, chosen ? x : y);
}
template <typename T, typename Sign, unsigned flags, typename D, typename A, typename B, typename C>
SIMT_PTX void op_slct(D&& d, const A& a, const B& b, const C& c) {
  op_selp<T, 0>(d, a, b, flushed<flags>(get<Sign>(c)) >= 0);
}

// ---------------------------------------------------------------------------------------------------------------
// Conversions

// `bits`, or if they are infinite and must not be, those of the largest number.
template <unsigned flags, typename T>
SIMT_PTX T finite(T bits, T infinity, T step) {
  const T magnitude = bits & std::numeric_limits<std::make_signed_t<T>>::max();
  return static_cast<T>((flags & kFinite) && magnitude == infinity ? bits - step : bits);
}

template <typename To, unsigned flags, typename From>
SIMT_PTX To to_real(From x) {  // a double, float or integer as To, rounded once
  constexpr Round round = round_of(flags);
  if constexpr (is_eight<To>) {
    return {encode_fp8<typename To::Format>(finished<flags>(x), true)};
  } else if constexpr (std::is_same_v<To, t_f16> || std::is_same_v<To, t_bf16>) {
    using Format = std::conditional_t<std::is_same_v<To, t_f16>, Binary16, Brain16>;
    using Wide = std::conditional_t<std::is_signed_v<From>, long long, unsigned long long>;
    if constexpr (std::is_same_v<From, float>)
      return {finite<flags, uint16_t>(detail::encode<Format>(finished<flags>(x), round),
                                      Format::encode(__builtin_inff()), 1)};
    else if constexpr (std::is_same_v<From, double>)
      return {detail::encode<Format>(finished<flags>(detail::to_odd_float(x)), round)};
    else
      return {detail::encode<Format>(finished<flags>(detail::to_odd_float(Wide(x))), round)};
  } else if constexpr (round == Round::nearest || std::is_same_v<To, From>) {
    return finished<flags>(static_cast<To>(x));
  } else {
    return finished<flags>(detail::rounded<To>(round, [](auto& a, auto&, auto&) { return static_cast<To>(a); }, x));
  }
}

template <typename To, unsigned flags, typename From>
SIMT_PTX To from_real(From x) {
  constexpr Round round = round_of(flags);
  if constexpr (std::is_integral_v<To>)
    return detail::to_integer<To>(flushed<flags>(x), round);
  else if constexpr (flags & kIntegral)
    return to_real<To, flags & ~3u>(detail::to_integral(flushed<flags>(x), round));
  else
    return to_real<To, flags>(flushed<flags>(x));
}

template <typename To, typename From, unsigned flags>
SIMT_PTX To converted(From x) {
  if constexpr (is_pair<From>) {
    using T = decltype(To::low);
    using F = decltype(From::low);
    return {converted<T, F, flags>(x.low), converted<T, F, flags>(x.high)};
  } else if constexpr (is_eight<From>) {
    return from_real<To, flags>(From::Format::decode(x.bits));
  } else if constexpr (std::is_same_v<From, t_f16>) {
    return from_real<To, flags>(Binary16::decode(x.bits));
  } else if constexpr (std::is_same_v<From, t_bf16>) {
    return from_real<To, flags>(Brain16::decode(x.bits));
  } else if constexpr (std::is_floating_point_v<From>) {
    return from_real<To, flags>(x);
  } else if constexpr (!std::is_integral_v<To>) {
    return to_real<To, flags>(x);
  } else if constexpr (flags & kSat) {
    using Limits = std::numeric_limits<To>;
    const auto wide = static_cast<__int128>(x);
    return wide > Limits::max() ? Limits::max() : wide < Limits::min() ? Limits::min() : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// A float rounded to the 10 fraction bits that a tensor core reads.
template <unsigned flags>
SIMT_PTX Tf32 to_tf32(float x) {
  const uint32_t bits = bit_cast<uint32_t>(flags & kRelu ? finished<kRelu>(x) : x);
  if (x != x) return {0x7fffffffu};
  const uint32_t half = flags & kAway ? 0x1000u : round_of(flags) == Round::zero ? 0 : 0xfffu + (bits >> 13 & 1u);
  return {finite<flags, uint32_t>((bits + half) & ~0x1fffu, 0x7f800000u, 0x2000u)};
}

template <typename To, typename From, unsigned flags, typename D, typename A>
SIMT_PTX void op_cvt(D&& d, const A& a) {
  const From x = get_low<From>(a);
  if constexpr (std::is_same_v<To, Tf32>)
    put_low<To>(d, to_tf32<flags>(x));
  else
    put_low<To>(d, converted<To, From, flags>(x));
}
template <typename To, typename From, unsigned flags, typename D, typename A, typename B>
SIMT_PTX void op_cvt(D&& d, const A& high, const B& low) {
  using E = decltype(To::low);
  put<To>(d, To{converted<E, From, flags>(get<From>(low)), converted<E, From, flags>(get<From>(high))});
}

// cvt.pack: two saturated integers in the lowest bits; above bytes, the lower half of c.
template <typename T, unsigned flags, typename D, typename A, typename B>
SIMT_PTX void op_cvt_pack(D&& d, const A& high, const B& low, uint32_t c = 0) {
  using U = std::make_unsigned_t<T>;
  const uint32_t above = U(converted<T, int32_t, kSat>(get<int32_t>(high)));
  const uint32_t below = U(converted<T, int32_t, kSat>(get<int32_t>(low)));
  put<uint32_t>(d, (sizeof(T) == 1 ? c << 16 : 0) | above << (8 * sizeof(T)) | below);
}

}  // namespace simt::ptx
