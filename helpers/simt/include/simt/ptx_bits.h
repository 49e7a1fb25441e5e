// ptx_bits.h: logic, shifts, bit fields, packed bytes, comparisons, selections and conversions of inline PTX.
//
// Results are exact, and conversions to integers saturate as on a GPU (bits.h). Deviations: NaN results are the host's,
// and prmt has only its general form, without the modes .f4e, .rc8 and so on.
#pragma once

#include "intrinsics.h"
#include "ptx_arithmetic.h"

namespace simt::ptx {

// ---------------------------------------------------------------------------------------------------------------
// Moves

template <typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_mov(D&& d, const A& a) {
  put<T>(d, get<T>(a));
}

// mov between one register and the elements of a vector, the lowest bits first.
template <typename T, unsigned flags, typename A, typename... D>
SIMT_PTX void op_unpack(const A& a, D&&... d) {
  constexpr unsigned bits = 8 * sizeof(T) / sizeof...(D);
  const auto whole = static_cast<uint64_t>(bit_cast<Bits<sizeof(T)>>(get<T>(a)));
  unsigned at = 0;
  ((put<Bits<bits / 8>>(d, static_cast<Bits<bits / 8>>(whole >> at)), at += bits), ...);
}
template <typename T, unsigned flags, typename D, typename... A>
SIMT_PTX void op_pack(D&& d, const A&... a) {
  constexpr unsigned bits = 8 * sizeof(T) / sizeof...(A);
  uint64_t whole = 0;
  unsigned at = 0;
  ((whole |= uint64_t{get<Bits<bits / 8>>(a)} << at, at += bits), ...);
  put<T>(d, bit_cast<T>(static_cast<Bits<sizeof(T)>>(whole)));
}

// ---------------------------------------------------------------------------------------------------------------
// Logic and shifts

#define SIMT_PTX_LOGIC(name, expression)                                    \
  template <typename T, unsigned flags, typename D, typename A, typename B> \
  SIMT_PTX void op_##name(D&& d, const A& a, const B& b) {                  \
    const T x = get<T>(a), y = get<T>(b);                                   \
    put<T>(d, static_cast<T>(expression));                                  \
  }
SIMT_PTX_LOGIC(and, x& y)
SIMT_PTX_LOGIC(or, x | y)
SIMT_PTX_LOGIC(xor, x ^ y)
#undef SIMT_PTX_LOGIC

template <typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_not(D&& d, const A& a) {
  if constexpr (std::is_same_v<T, bool>)
    put<bool>(d, !get<bool>(a));
  else
    put<T>(d, static_cast<T>(~get<T>(a)));
}
template <typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_cnot(D&& d, const A& a) {
  put<T>(d, get<T>(a) == 0);
}
template <typename T, unsigned flags, typename D, typename A, typename B>
SIMT_PTX void op_shl(D&& d, const A& a, const B& b) {
  const uint32_t by = get<uint32_t>(b);
  put<T>(d, by < 8 * sizeof(T) ? static_cast<T>(uint64_t{get<T>(a)} << by) : T(0));
}
template <typename T, unsigned flags, typename D, typename A, typename B>
SIMT_PTX void op_shr(D&& d, const A& a, const B& b) {
  const uint32_t most = 8 * sizeof(T) - 1, by = get<uint32_t>(b);
  const T x = get<T>(a);
  put<T>(d, by <= most ? static_cast<T>(x >> by) : static_cast<T>(x >> most >> 1));
}

template <typename T, unsigned flags, typename D, typename A, typename B, typename C, typename Table>
SIMT_PTX void op_lop3(D&& d, const A& a, const B& b, const C& c, const Table& table) {
  const uint32_t x = get<uint32_t>(a), y = get<uint32_t>(b), z = get<uint32_t>(c), chosen = get<uint32_t>(table);
  uint32_t result = 0;  // bit i of the table: the result for x, y, z = bits 2, 1, 0 of i
  if (chosen & 0x01) result |= ~x & ~y & ~z;
  if (chosen & 0x02) result |= ~x & ~y & z;
  if (chosen & 0x04) result |= ~x & y & ~z;
  if (chosen & 0x08) result |= ~x & y & z;
  if (chosen & 0x10) result |= x & ~y & ~z;
  if (chosen & 0x20) result |= x & ~y & z;
  if (chosen & 0x40) result |= x & y & ~z;
  if (chosen & 0x80) result |= x & y & z;
  put<uint32_t>(d, result);
}

#define SIMT_PTX_FUNNEL(name, function)                                                 \
  template <typename T, unsigned flags, typename D, typename A, typename B, typename C> \
  SIMT_PTX void op_shf_##name(D&& d, const A& a, const B& b, const C& c) {              \
    put<uint32_t>(d, function(get<uint32_t>(a), get<uint32_t>(b), get<uint32_t>(c)));   \
  }
SIMT_PTX_FUNNEL(l_wrap, __funnelshift_l)
SIMT_PTX_FUNNEL(r_wrap, __funnelshift_r)
SIMT_PTX_FUNNEL(l_clamp, __funnelshift_lc)
SIMT_PTX_FUNNEL(r_clamp, __funnelshift_rc)
#undef SIMT_PTX_FUNNEL

// ---------------------------------------------------------------------------------------------------------------
// Counting and finding bits, bit fields

SIMT_PTX uint32_t population(uint64_t x) { return static_cast<uint32_t>(__builtin_popcountll(x)); }

template <typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_popc(D&& d, const A& a) {
  put<uint32_t>(d, population(get<T>(a)));
}
template <typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_clz(D&& d, const A& a) {
  const uint64_t x = get<T>(a);
  put<uint32_t>(d, x ? static_cast<uint32_t>(__builtin_clzll(x)) - (64 - 8 * sizeof(T)) : 8 * sizeof(T));
}
template <typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_brev(D&& d, const A& a) {
  put<T>(d, static_cast<T>(__brevll(get<T>(a)) >> (64 - 8 * sizeof(T))));
}

// The position of the highest bit that is not the sign; with shiftamt, how far it is from the top.
template <typename T, bool from_top, typename D, typename A>
SIMT_PTX void find_bit(D&& d, const A& a) {
  const T x = get<T>(a);
  const uint64_t bits = static_cast<std::make_unsigned_t<T>>(x < 0 ? ~x : x);
  const uint32_t at = bits ? 63 - static_cast<uint32_t>(__builtin_clzll(bits)) : ~0u;
  put<uint32_t>(d, from_top && bits ? 8 * sizeof(T) - 1 - at : at);
}
template <typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_bfind(D&& d, const A& a) {
  find_bit<T, false>(d, a);
}
template <typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_bfind_shiftamt(D&& d, const A& a) {
  find_bit<T, true>(d, a);
}

// Bits [position, position + length) of a, extended by their highest bit or, beyond the top of a, by its sign.
template <typename T, unsigned flags, typename D, typename A, typename B, typename C>
SIMT_PTX void op_bfe(D&& d, const A& a, const B& b, const C& c) {
  constexpr uint32_t all = 8 * sizeof(T);
  const uint32_t position = get<uint32_t>(b) & 0xff, length = get<uint32_t>(c) & 0xff;
  const T x = get<T>(a);
  const T moved = position < all ? static_cast<T>(x >> position) : static_cast<T>(x < 0 ? -1 : 0);
  const uint32_t unused = length < all ? all - length : 0;
  put<T>(d, length == 0 ? T(0) : static_cast<T>(static_cast<T>(std::make_unsigned_t<T>(moved) << unused) >> unused));
}
template <typename T, unsigned flags, typename D, typename A, typename B, typename P, typename L>
SIMT_PTX void op_bfi(D&& d, const A& a, const B& b, const P& p, const L& l) {
  constexpr uint32_t all = 8 * sizeof(T);
  const uint32_t position = get<uint32_t>(p) & 0xff, length = get<uint32_t>(l) & 0xff;
  const T field = length < all ? static_cast<T>((T(1) << length) - 1) : T(~T(0));
  const T mask = position < all ? static_cast<T>(field << position) : T(0);
  const T moved = position < all ? static_cast<T>(get<T>(a) << position) : T(0);
  put<T>(d, static_cast<T>((moved & mask) | (get<T>(b) & ~mask)));
}
template <typename T, unsigned flags, typename D, typename A, typename B, typename C>
SIMT_PTX void op_fns(D&& d, const A& mask, const B& base, const C& offset) {
  put<uint32_t>(d, __fns(get<uint32_t>(mask), get<uint32_t>(base), get<int32_t>(offset)));
}

// ---------------------------------------------------------------------------------------------------------------
// Packed bytes and 16-bit elements

// Byte n of the result is byte (selector >> 4n) & 7 of b:a, or eight copies of its sign if bit 3 is set.
SIMT_NOT_TRACED inline uint32_t permuted_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t result = __byte_perm(a, b, selector);
  for (int n = 0; n < 4; ++n) {
    const uint32_t sign = result >> (8 * n + 7) & 1, byte = 0xffu << (8 * n);
    if (selector >> (4 * n + 3) & 1) result = sign ? result | byte : result & ~byte;
  }
  return result;
}
template <typename T, unsigned flags, typename D, typename A, typename B, typename C>
SIMT_PTX void op_prmt(D&& d, const A& a, const B& b, const C& c) {
  put<uint32_t>(d, permuted_bytes(get<uint32_t>(a), get<uint32_t>(b), get<uint32_t>(c)));
}

enum class Packed { add, sub, avrg, min, max, absdiff };

// The results of the elements, side by side, or c plus their sum.
template <Packed operation, typename E>
SIMT_NOT_TRACED __attribute__((noinline)) inline uint32_t packed(uint32_t a, uint32_t b, uint32_t c, bool sum) {
  uint32_t together = 0;
  for (unsigned at = 0; at < 32; at += 8 * sizeof(E)) {
    const int x = static_cast<E>(a >> at), y = static_cast<E>(b >> at);
    const int result = operation == Packed::add      ? x + y
                       : operation == Packed::sub    ? x - y
                       : operation == Packed::avrg   ? (x + y + 1) >> 1
                       : operation == Packed::min    ? (x < y ? x : y)
                       : operation == Packed::max    ? (x > y ? x : y)
                       : /* Packed::absdiff */ x < y ? y - x
                                                     : x - y;
    c += static_cast<uint32_t>(result);
    together |= uint32_t{static_cast<std::make_unsigned_t<E>>(result)} << at;
  }
  return sum ? c : together;
}
#define SIMT_PTX_PACKED(name, lanes, bits, suffix, sum)                                                   \
  template <typename T, unsigned flags, typename D, typename A, typename B, typename C>                   \
  SIMT_PTX void op_v##name##lanes##suffix(D&& d, const A& a, const B& b, const C& c) {                    \
    using E = std::conditional_t<std::is_signed_v<T>, int##bits##_t, uint##bits##_t>;                     \
    put<uint32_t>(d, packed<Packed::name, E>(get<uint32_t>(a), get<uint32_t>(b), get<uint32_t>(c), sum)); \
  }
#define SIMT_PTX_PACKED_ALL(name)          \
  SIMT_PTX_PACKED(name, 2, 16, , false)    \
  SIMT_PTX_PACKED(name, 4, 8, , false)     \
  SIMT_PTX_PACKED(name, 2, 16, _add, true) \
  SIMT_PTX_PACKED(name, 4, 8, _add, true)
SIMT_PTX_PACKED_ALL(add)
SIMT_PTX_PACKED_ALL(sub)
SIMT_PTX_PACKED_ALL(avrg)
SIMT_PTX_PACKED_ALL(min)
SIMT_PTX_PACKED_ALL(max)
SIMT_PTX_PACKED_ALL(absdiff)
#undef SIMT_PTX_PACKED_ALL
#undef SIMT_PTX_PACKED

// ---------------------------------------------------------------------------------------------------------------
// Comparisons and selections. A comparison with NaN is false, unless its name ends in u; `ne` too.

template <bool unordered_result, typename Relation>
struct Comparison {
  template <typename T>
  static bool of(T x, T y) {
    return x != x || y != y ? unordered_result : Relation::of(x, y);
  }
};
#define SIMT_PTX_RELATION(name, condition)                                \
  struct Relation_##name {                                                \
    template <typename T>                                                 \
    SIMT_PTX static bool of([[maybe_unused]] T x, [[maybe_unused]] T y) { \
      return condition;                                                   \
    }                                                                     \
  };
SIMT_PTX_RELATION(eq, x == y)
SIMT_PTX_RELATION(ne, x != y)
SIMT_PTX_RELATION(lt, x < y)
SIMT_PTX_RELATION(le, x <= y)
SIMT_PTX_RELATION(gt, x > y)
SIMT_PTX_RELATION(ge, x >= y)
SIMT_PTX_RELATION(always, true)
SIMT_PTX_RELATION(never, false)
#undef SIMT_PTX_RELATION
using t_eq = Comparison<false, Relation_eq>;
using t_ne = Comparison<false, Relation_ne>;
using t_lt = Comparison<false, Relation_lt>;
using t_le = Comparison<false, Relation_le>;
using t_gt = Comparison<false, Relation_gt>;
using t_ge = Comparison<false, Relation_ge>;
using t_lo = t_lt;
using t_ls = t_le;
using t_hi = t_gt;
using t_hs = t_ge;
using t_equ = Comparison<true, Relation_eq>;
using t_neu = Comparison<true, Relation_ne>;
using t_ltu = Comparison<true, Relation_lt>;
using t_leu = Comparison<true, Relation_le>;
using t_gtu = Comparison<true, Relation_gt>;
using t_geu = Comparison<true, Relation_ge>;
using t_num = Comparison<false, Relation_always>;
using t_nan = Comparison<true, Relation_never>;

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

template <typename To, unsigned flags, typename From>
SIMT_PTX To to_real(From x) {  // a double, float or integer as To, rounded once
  constexpr Round round = round_of(flags);
  if constexpr (std::is_same_v<To, t_f16> || std::is_same_v<To, t_bf16>) {
    using Format = std::conditional_t<std::is_same_v<To, t_f16>, Binary16, Brain16>;
    using Wide = std::conditional_t<std::is_signed_v<From>, long long, unsigned long long>;
    if constexpr (std::is_same_v<From, float>)
      return {detail::encode<Format>(finished<flags>(x), round)};
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
  if constexpr (std::is_same_v<From, t_f16>) {
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
  if ((bits & 0x7f800000u) == 0x7f800000u) return {bits};
  return {(bits + (flags & kAway ? 0x1000u : 0xfffu + (bits >> 13 & 1u))) & ~0x1fffu};
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
