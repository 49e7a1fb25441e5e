// ptx_mma.h: mma.sync of inline PTX.
//
// A register of a factor holds `pack` elements along k. Lane l has, of a, rows l / 4 and l / 4 + 8, and of b, column
// l / 4: elements l % 4 * pack and on, and the same 4 * pack further along k. Of c and d it has rows l / 4 and l / 4 + 8,
// columns l % 4 * 2 and the next.
//
// Sums are those of Hopper's tensor cores (tensor_core_sum.h), for tf32 too; integer sums are exact; float64 is one fused
// multiply-add after another, along k.
#pragma once

#include "ptx_memory.h"
#include "tensor_core_sum.h"

namespace simt {

template <typename Format, int fraction, int bias>
struct PtxFormat16 {
  static constexpr int kFraction = fraction, kBias = bias, kBits = 16;
  SIMT_NOT_TRACED static uint32_t bits(ptx::Narrow<Format> value) { return value.bits; }
  SIMT_NOT_TRACED static float widened(ptx::Narrow<Format> value) { return Format::decode(value.bits); }
};
template <>
struct NarrowFormat<ptx::t_f16> : PtxFormat16<Binary16, 10, 15> {};
template <>
struct NarrowFormat<ptx::t_bf16> : PtxFormat16<Brain16, 7, 127> {};
template <>
struct NarrowFormat<ptx::Tf32> {
  static constexpr int kFraction = 10, kBias = 127, kBits = 19;
  SIMT_NOT_TRACED static uint32_t bits(ptx::Tf32 value) { return value.bits >> 13; }
  SIMT_NOT_TRACED static float widened(ptx::Tf32 value) { return bit_cast<float>(value.bits & ~0x1fffu); }
};

namespace ptx {

template <typename T>
struct Element {  // of a factor; what is multiplied is a Value
  using Value = T;
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static constexpr int pack = sizeof(Word) / sizeof(T);
  SIMT_NOT_TRACED static T of(Word word, int i) {
    return bit_cast<T>(static_cast<Bits<sizeof(T)>>(word >> 8 * sizeof(T) * static_cast<unsigned>(i)));
  }
};
template <typename Format>
struct Element<Eight<Format>> {
  using Value = t_f16;
  using Word = uint32_t;
  static constexpr int pack = 4;
  SIMT_NOT_TRACED static t_f16 of(uint32_t word, int i) {  // exactly
    return {Binary16::encode(Format::decode(static_cast<uint8_t>(word >> 8 * i)))};
  }
};
template <int bits, bool with_sign>
struct Element<Few<bits, with_sign>> {
  using Value = int8_t;
  using Word = uint32_t;
  static constexpr int pack = 32 / bits;
  SIMT_NOT_TRACED static int8_t of(uint32_t word, int i) {
    const int code = static_cast<int>(word >> bits * i & ((1u << bits) - 1));
    return static_cast<int8_t>(with_sign && code >> (bits - 1) ? code - (1 << bits) : code);
  }
};

struct Product {
  SIMT_NOT_TRACED static int32_t of(int32_t x, int32_t y) { return x * y; }
};
struct Differs {
  SIMT_NOT_TRACED static int32_t of(int32_t x, int32_t y) { return x ^ y; }
};

template <typename Word, int registers_a, int registers_b>
struct Factors {
  Word a[registers_a], b[registers_b];

  SIMT_NOT_TRACED __attribute__((noinline)) explicit Factors(const Word* registers) {
    for (int i = 0; i < registers_a; ++i) a[i] = registers[i];
    for (int i = 0; i < registers_b; ++i) b[i] = registers[registers_a + i];
  }
};

template <bool saturate>
SIMT_NOT_TRACED int32_t whole_sum(int64_t sum) {
  if (saturate && sum > INT32_MAX) return INT32_MAX;
  if (saturate && sum < INT32_MIN) return INT32_MIN;
  return static_cast<int32_t>(sum);
}
template <typename TD>
SIMT_NOT_TRACED float rounded_to(const TensorCoreSum& sum) {
  float result;
  if constexpr (std::is_same_v<TD, float>)
    round_sum(sum, result);
  else
    result = sum.is_special ? sum.special
                            : detail::to_odd_float(__builtin_ldexp(static_cast<double>(sum.sum), sum.exponent));
  return std::is_same_v<TD, float> ? result : Binary16::decode(Binary16::encode(result));
}

// Where Hopper multiplies element k: of 8-bit floats, for which nvcc makes two products of halves, each of half of every
// register (the machine code of CUDA 13.0 for sm_90a).
template <typename T, int depth>
SIMT_NOT_TRACED int place_of(int k) {
  return is_eight<T> ? k % 4 / 2 * (depth / 2) + k / 4 * 2 + k % 2 : k;
}

template <typename S, typename TD, typename TA, typename TB, typename TC, typename Times, bool saturate, typename Word,
          int na, int nb, int nd>
SIMT_NOT_TRACED __attribute__((noinline)) void multiply(Word (&d)[nd], const Lanes<Factors<Word, na, nb>>& lanes,
                                                        const Word* c, unsigned lane) {
  using A = Element<TA>;
  using B = Element<TB>;
  using X = typename A::Value;
  using Y = typename B::Value;
  constexpr int pack = A::pack, rows = S::m / 8, products = is_eight<TA> ? 2 : 1, depth = S::k / products;
  X x_of[rows][S::k];
  Y y_of[2][S::k];
  for (int k = 0; k < S::k; ++k) {
    const int part = k / (4 * pack), from = k / pack % 4, at = place_of<TA, S::k>(k);
    for (int i = 0; i < rows; ++i) x_of[i][at] = A::of(lanes[lane / 4 * 4 + from].a[part * rows + i], k % pack);
    for (int i = 0; i < 2; ++i) y_of[i][at] = B::of(lanes[(lane % 4 * 2 + i) * 4 + from].b[part], k % pack);
  }
  constexpr bool narrow = std::is_same_v<TD, float> || is_narrow<TD>;
  [[maybe_unused]] Decoded x_decoded[rows][S::k], y_decoded[2][S::k];  // once for all sums
  if constexpr (narrow) {
    for (int i = 0; i < rows; ++i) decode_all(x_of[i], S::k, x_decoded[i]);
    for (int i = 0; i < 2; ++i) decode_all(y_of[i], S::k, y_decoded[i]);
  }
  for (int i = 0; i < 2 * rows; ++i) {  // row lane / 4 + i / 2 * 8, column lane % 4 * 2 + i % 2
    const X* const x = x_of[i / 2];
    const Y* const y = y_of[i % 2];
    if constexpr (std::is_same_v<TD, double>) {
      double sum = bit_cast<double>(c[i]);
      for (int k = 0; k < S::k; ++k) sum = __builtin_fma(x[k], y[k], sum);
      d[i] = bit_cast<uint64_t>(sum);
    } else if constexpr (!narrow) {
      int64_t sum = static_cast<int32_t>(c[i]);
      for (int k = 0; k < S::k; ++k) sum += Times::of(x[k], y[k]);
      d[i] = static_cast<uint32_t>(whole_sum<saturate>(sum));
    } else {
      float addend;
      if constexpr (std::is_same_v<TC, float>)
        addend = bit_cast<float>(c[i]);
      else
        addend = Binary16::decode(static_cast<uint16_t>(c[i / 2] >> i % 2 * 16));
      float result = products == 1 ? addend : 0;
      for (int k = 0; k < S::k; k += depth)
        result =
            rounded_to<TD>(tensor_core_sum(x + k, y + k, x_decoded[i / 2] + k, y_decoded[i % 2] + k, depth, result));
      if (products > 1) result += addend;
      if constexpr (std::is_same_v<TD, float>) {
        d[i] = bit_cast<uint32_t>(result);
      } else {
        if (i % 2 == 0) d[i / 2] = 0;
        d[i / 2] |= uint32_t{Binary16::encode(result)} << i % 2 * 16;
      }
    }
  }
}

// A number in the text is an element of c, which no result goes to.
template <typename Word, typename R>
SIMT_PTX void put_word(R& to, Word word) {
  if constexpr (std::is_same_v<R, Word>) to = word;
}

template <typename TA, int multiply_adds>
SIMT_PTX void tell_product_of() {  // of elements of less than 8 bits, as of fewer of 8; not of float64
  if constexpr (is_few<TA>)
    tell_product<int8_t, multiply_adds / (Element<TA>::pack / 4)>();
  else if constexpr (sizeof(TA) < 8)
    tell_product<TA, multiply_adds>();
}

template <typename S, typename TD, typename TA, typename TB, typename TC, typename Times, unsigned flags, typename... R>
SIMT_PTX void product_of_matrices(R&&... r) {
  using Word = typename Element<TA>::Word;
  constexpr int factor = S::k / 4 / Element<TA>::pack, na = S::m / 8 * factor, nb = factor;
  constexpr int nd = S::m / 8 * (sizeof(TD) == 2 ? 1 : 2), nc = S::m / 8 * (sizeof(TC) == 2 ? 1 : 2);
  static_assert(sizeof...(R) == nd + na + nb + nc, "mma.sync has another number of registers for this shape");
  const Word all[] = {get<Word>(r)...};
  tell_product_of<TA, S::m * S::n * S::k>();
  const Factors<Word, na, nb> own(all + nd);
  Word d[nd];
  {
    const Lanes<Factors<Word, na, nb>> lanes(own);
    multiply<S, TD, TA, TB, TC, Times, (flags & kFinite) != 0>(d, lanes, all + nd + na + nb, lane());
  }
  int i = 0;
  ((i < nd ? put_word(r, d[i]) : void(), ++i), ...);
}
#define SIMT_PTX_MMA(name, times)                                                                          \
  template <typename S, typename TD, typename TA, typename TB, typename TC, unsigned flags, typename... R> \
  SIMT_PTX void op_##name(R&&... r) {                                                                      \
    product_of_matrices<S, TD, TA, TB, TC, times, flags>(r...);                                            \
  }
SIMT_PTX_MMA(mma, Product)
SIMT_PTX_MMA(mma_and, Product)  // of single bits
SIMT_PTX_MMA(mma_xor, Differs)
#undef SIMT_PTX_MMA

}  // namespace ptx
}  // namespace simt
