// narrow_formats.h: encodes and decodes the 16-bit floating-point formats, IEEE binary16 and bfloat16, and the 8-bit ones,
// E4M3 and E5M2.
//
// All arithmetic on them is done in float and rounded once. For + - * / and square root one rounding to float and a
// second one to 16 bits give the correctly rounded result (float has more than twice the digits). Where that would be
// wrong (from double, from integers, for fused multiply-add) the step to float rounds to odd: an inexact result keeps
// its last bit set, so that the second rounding still sees on which side of a tie the value lies. NaN becomes 0x7fff,
// as on the GPU, and 0x7f.
#pragma once

#include "bits.h"

namespace simt {

struct Binary16 {
  static float decode(uint16_t bits) {
    const uint32_t magnitude = uint32_t(bits & 0x7fffu) << 13;  // exponent and fraction where float has them
    const uint32_t sign = uint32_t(bits & 0x8000u) << 16;
    uint32_t result = magnitude + (uint32_t(127 - 15) << 23);
    if (magnitude >= 0x0f800000u) {  // infinity and NaN
      result = magnitude | 0x7f800000u;
    } else if (magnitude < 0x00800000u) {  // subnormal: a normal float, found by subtracting the implicit bit
      result = bit_cast<uint32_t>(bit_cast<float>(result + 0x00800000u) - 0x1p-14f);
    }
    return bit_cast<float>(result | sign);
  }

  static uint16_t encode(float x) {
    const uint32_t bits = bit_cast<uint32_t>(x);
    const uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x38800000u) {  // below 2^-14: adding 1/2 rounds at the last place of a subnormal
      magnitude = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
      return static_cast<uint16_t>(sign | magnitude);
    }
    if (magnitude >= 0x47800000u) return magnitude > 0x7f800000u ? 0x7fff : static_cast<uint16_t>(sign | 0x7c00u);
    magnitude += 0xfffu + (magnitude >> 13 & 1u);  // to nearest, ties to even; may carry into infinity
    return static_cast<uint16_t>(sign | (magnitude - (uint32_t(127 - 15) << 23)) >> 13);
  }
};

struct Brain16 {
  static float decode(uint16_t bits) { return bit_cast<float>(uint32_t(bits) << 16); }

  static uint16_t encode(float x) {
    const uint32_t bits = bit_cast<uint32_t>(x);
    if (x != x) return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
};

struct E4M3 {
  static constexpr int fraction_bits = 3, bias = 7;
  static constexpr unsigned largest = 0x7e, overflow = 0x7f;

  static float decode(unsigned char code) {  // a half whose exponent is 8 too small
    if ((code & 0x7fu) == 0x7fu) return __builtin_nanf("");
    return 256 * Binary16::decode(static_cast<uint16_t>((code & 0x80u) << 8 | (code & 0x7fu) << 7));
  }
};

struct E5M2 {
  static constexpr int fraction_bits = 2, bias = 15;
  static constexpr unsigned largest = 0x7b, overflow = 0x7c;

  static float decode(unsigned char code) { return Binary16::decode(static_cast<uint16_t>(code << 8)); }  // half a half
};

template <typename Format>
inline unsigned char encode_fp8(double x, bool saturate) {
  if (x != x) return 0x7f;
  const uint64_t bits = bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52 & 0x7ffu) - 1023;
  if (exponent < 1 - Format::bias) exponent = 1 - Format::bias;  // subnormal
  unsigned code = Format::overflow;
  if (exponent <= 1 + Format::bias) {
    // The number in units of the last place; its leading bit adds 1 to the exponent's field, unless it is subnormal.
    const double unit = bit_cast<double>(uint64_t(1023 + Format::fraction_bits - exponent) << 52);
    code = static_cast<unsigned>(__builtin_rint(__builtin_fabs(x) * unit));
    code += static_cast<unsigned>(exponent + Format::bias - 1) << Format::fraction_bits;
  }
  if (code > Format::largest) code = saturate ? Format::largest : Format::overflow;
  return static_cast<unsigned char>(code | static_cast<unsigned>(bits >> 63) << 7);
}

namespace detail {

// Rounds in the given direction: the nearest value is at most one step off.
template <typename Format>
inline uint16_t encode(float x, Round round) {
  const uint16_t bits = Format::encode(x);
  const float nearest = Format::decode(bits);
  if (round == Round::nearest || nearest == x || x != x) return bits;
  const bool too_high = nearest > x, negative = bits >> 15;
  const bool outward = negative == too_high;  // the wanted neighbour has the larger magnitude
  const bool right_side = round == Round::up     ? too_high
                          : round == Round::down ? !too_high
                                                 : negative == too_high;  // nearer to zero already
  return static_cast<uint16_t>(right_side ? bits : outward ? bits + 1 : bits - 1);
}

inline float to_odd_float(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  uint32_t bits = bit_cast<uint32_t>(nearest);
  if (__builtin_fabs(back) > __builtin_fabs(x)) bits -= 1;  // towards zero, then odd
  return bit_cast<float>(bits | 1u);
}

inline float to_odd_float(unsigned long long x) {
  if (x < (1u << 24)) return static_cast<float>(x);
  const int shift = 40 - __builtin_clzll(x);
  const unsigned long long kept = x >> shift;
  const bool inexact = kept << shift != x;
  return static_cast<float>(kept | inexact) * static_cast<float>(1ull << shift);
}
inline float to_odd_float(long long x) {
  return x < 0 ? -to_odd_float(0ull - static_cast<unsigned long long>(x))
               : to_odd_float(static_cast<unsigned long long>(x));
}

// a * b + c for 16-bit operands: the product is exact in double, the sum is rounded to odd.
inline float fused_multiply_add(float a, float b, float c) {
  const double product = double(a) * b;
  const double sum = product + c;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (double(c) - part);
  if (error == 0 || error != error) return to_odd_float(sum);  // exact, infinite or NaN
  uint64_t bits = bit_cast<uint64_t>(sum);
  if ((error < 0) != (sum < 0)) bits -= 1;
  return to_odd_float(bit_cast<double>(bits | 1u));
}

inline float saturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline float relu(float x) { return x > 0 || x != x ? x : 0.0f; }  // -0 becomes +0
inline float minimum(float a, float b) {                           // of a number and NaN: the number; -0 is below +0
  if (a != a) return b;
  if (a == 0 && b == 0) return __builtin_signbit(a) ? a : b;
  return b != b || a < b ? a : b;
}

}  // namespace detail
}  // namespace simt
