// ptx_bits.h: moves, logic, shifts, bit fields and packed bytes of inline PTX.
//
// All results are exact. Limit: the packed instructions (vadd4, vabsdiff2 ...) work on all elements, in order, and do not
// saturate.
#pragma once

#include "intrinsics.h"
#include "ptx_arithmetic.h"

namespace simt::ptx {

// ---------------------------------------------------------------------------------------------------------------
// Of one operand, x

SIMT_PTX uint32_t population(uint64_t x) { return static_cast<uint32_t>(__builtin_popcountll(x)); }

// The position of the highest bit that is not the sign; from_top: how far it is from the top.
template <bool from_top, typename T>
SIMT_PTX uint32_t highest_bit(T x) {
  const uint64_t bits = static_cast<std::make_unsigned_t<T>>(x < 0 ? ~x : x);
  const uint32_t at = bits ? 63 - static_cast<uint32_t>(__builtin_clzll(bits)) : ~0u;
  return from_top && bits ? 8 * sizeof(T) - 1 - at : at;
}

#define SIMT_PTX_UNARY(name, Result, expression)                \
  template <typename T, unsigned flags, typename D, typename A> \
  SIMT_PTX void op_##name(D&& d, const A& a) {                  \
    const T x = get<T>(a);                                      \
    put<Result>(d, static_cast<Result>(expression));            \
  }
SIMT_PTX_UNARY(mov, T, x)
SIMT_PTX_UNARY(cnot, T, x == 0)
SIMT_PTX_UNARY(popc, uint32_t, population(x))
SIMT_PTX_UNARY(clz, uint32_t, x ? __builtin_clzll(x) - (64 - 8 * sizeof(T)) : 8 * sizeof(T))
SIMT_PTX_UNARY(brev, T, __brevll(x) >> (64 - 8 * sizeof(T)))
SIMT_PTX_UNARY(bfind, uint32_t, highest_bit<false>(x))
SIMT_PTX_UNARY(bfind_shiftamt, uint32_t, highest_bit<true>(x))
#undef SIMT_PTX_UNARY

// ---------------------------------------------------------------------------------------------------------------
// Vectors

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

// ---------------------------------------------------------------------------------------------------------------
// Bit fields

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

// A number of bits that is cut to 5 bits, or counts as 32 from there on.
template <bool wraps>
SIMT_PTX uint32_t bits_of_word(uint32_t x) {
  return wraps ? x & 31 : x < 32 ? x : 32;
}
#define SIMT_PTX_FIELDS(mode, wraps)                                        \
  template <typename T, unsigned flags, typename D, typename A, typename B> \
  SIMT_PTX void op_szext_##mode(D&& d, const A& a, const B& b) {            \
    op_bfe<T, 0>(d, a, 0u, bits_of_word<wraps>(get<uint32_t>(b)));          \
  }                                                                         \
  template <typename T, unsigned flags, typename D, typename A, typename B> \
  SIMT_PTX void op_bmsk_##mode(D&& d, const A& a, const B& b) {             \
    const uint32_t at = bits_of_word<wraps>(get<uint32_t>(a));              \
    op_bfi<T, 0>(d, ~0u, 0u, at, bits_of_word<wraps>(get<uint32_t>(b)));    \
  }
SIMT_PTX_FIELDS(wrap, true)
SIMT_PTX_FIELDS(clamp, false)
#undef SIMT_PTX_FIELDS

// ---------------------------------------------------------------------------------------------------------------
// Words, packed bytes and 16-bit elements

// Byte n of the result is byte (selector >> 4n) & 7 of b:a, or eight copies of its sign if bit 3 is set.
SIMT_NOT_TRACED inline uint32_t permuted_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t result = __byte_perm(a, b, selector);
  for (int n = 0; n < 4; ++n) {
    const uint32_t sign = result >> (8 * n + 7) & 1, byte = 0xffu << (8 * n);
    if (selector >> (4 * n + 3) & 1) result = sign ? result | byte : result & ~byte;
  }
  return result;
}

// In a mode the lowest bits of c choose one of four selectors.
template <uint64_t selectors>
SIMT_PTX uint32_t permuted_in_mode(uint32_t a, uint32_t b, uint32_t c) {
  return permuted_bytes(a, b, static_cast<uint32_t>(selectors >> 16 * (c & 3) & 0xffff));
}

// Of three words.
#define SIMT_PTX_WORDS(name, function)                                                  \
  template <typename T, unsigned flags, typename D, typename A, typename B, typename C> \
  SIMT_PTX void op_##name(D&& d, const A& a, const B& b, const C& c) {                  \
    put<uint32_t>(d, function(get<uint32_t>(a), get<uint32_t>(b), get<uint32_t>(c)));   \
  }
SIMT_PTX_WORDS(prmt, permuted_bytes)
SIMT_PTX_WORDS(prmt_f4e, permuted_in_mode<0x6543543243213210>)
SIMT_PTX_WORDS(prmt_b4e, permuted_in_mode<0x0123701267015670>)
SIMT_PTX_WORDS(prmt_rc8, permuted_in_mode<0x3333222211110000>)
SIMT_PTX_WORDS(prmt_ecl, permuted_in_mode<0x3333322232113210>)
SIMT_PTX_WORDS(prmt_ecr, permuted_in_mode<0x3210221011100000>)
SIMT_PTX_WORDS(prmt_rc16, permuted_in_mode<0x3232101032321010>)
SIMT_PTX_WORDS(fns, __fns)
SIMT_PTX_WORDS(shf_l_wrap, __funnelshift_l)
SIMT_PTX_WORDS(shf_r_wrap, __funnelshift_r)
SIMT_PTX_WORDS(shf_l_clamp, __funnelshift_lc)
SIMT_PTX_WORDS(shf_r_clamp, __funnelshift_rc)
#undef SIMT_PTX_WORDS

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

}  // namespace simt::ptx
