// wgmma.h: what a warp group's tensor cores multiply: factors in shared memory as descriptors say, and their sums. The
// descriptors of tcgen05 say it in the same way (runtime/threads/tensor_product.cpp).
//
// A factor is lines of elements: rows of a, columns of b ("K-major"), or where the factor is transposed, its 16 lines
// along k. A line of a swizzled factor lies in rows of 32, 64 or 128 bytes, that of another in rows of 16 bytes. 8 rows
// follow each other; a descriptor says how far the next 8 lines are, and the line's next row; the other way round in a
// transposed factor that is not swizzled.
//
// Sums of 16-bit factors and of TF32 are float32, one product after another, so that last bits differ from a GPU's; a
// sum in half precision is rounded once for each instruction. Sums of integers are exact. Of floating factors of 8
// bits the sums are those of an H200, bit for bit (November 2026): an instruction aligns its 32 products and the sum so
// far to the largest of them, and drops what lies more than 13 bits below its leading bit. Sums whose largest factors
// are subnormal were not compared.
#pragma once

#include "approximations.h"
#include "async.h"
#include "tensor_core_sum.h"
#include "tensor_map.h"

namespace simt {

inline constexpr int kFactorBytes = 32;  // of a line along k, in each of wgmma's formats

class Descriptor {
 public:
  SIMT_NOT_TRACED explicit Descriptor(uint64_t bits)
      : start_(address(bits)), next_row_(address(bits >> 16)), next_8_lines_(address(bits >> 32)) {
    const unsigned mode = static_cast<unsigned>(bits >> 62);  // 0: no swizzle; 1 to 3: of 128, 64, 32 bytes
    swizzle_ = mode ? 4 - mode : 0;
    row_shift_ = 4 + swizzle_;
    refused_ = bits >> 49 & 15 || bits >> 61 & 1;
  }

  SIMT_NOT_TRACED __attribute__((always_inline)) uint32_t at(uint32_t line, uint32_t byte, bool transposed) const {
    return at(of_line(line, transposed) + of_byte(byte, transposed));
  }
  // In two parts, for loops: their sum is an address before it is swizzled.
  SIMT_NOT_TRACED __attribute__((always_inline)) uint32_t at(uint32_t sum) const { return swizzled(sum, swizzle_); }
  SIMT_NOT_TRACED __attribute__((always_inline)) uint32_t of_line(uint32_t line, bool transposed) const {
    return start_ + line / 8 * (swapped(transposed) ? next_row_ : next_8_lines_) + (line % 8 << row_shift_);
  }
  SIMT_NOT_TRACED __attribute__((always_inline)) uint32_t of_byte(uint32_t byte, bool transposed) const {
    const uint32_t in_row = byte & ((1u << row_shift_) - 1);
    return (byte >> row_shift_) * (swapped(transposed) ? next_8_lines_ : next_row_) + in_row;
  }
  SIMT_NOT_TRACED const char* refused() const {
    return refused_ ? "not supported by the simulator: a descriptor of shared memory with a base offset, with leading "
                      "offsets that are absolute, or with the swizzle of 128 bytes in pieces of 32"
                    : nullptr;
  }

 private:
  SIMT_NOT_TRACED __attribute__((always_inline)) bool swapped(bool transposed) const { return transposed && !swizzle_; }
  SIMT_NOT_TRACED static uint32_t address(uint64_t field) { return static_cast<uint32_t>(field & 0x3fff) << 4; }

  uint32_t start_, next_row_, next_8_lines_;
  unsigned swizzle_, row_shift_;  // a row has 1 << row_shift_ bytes
  bool refused_;
};

// Tells the X-ray of `count` lines that a warp reads, and of which bytes.
SIMT_NOT_TRACED __attribute__((noinline)) inline void tell_lines(const char* memory, Descriptor factor, uint32_t first,
                                                                 uint32_t count, uint32_t from, uint32_t bytes,
                                                                 bool transposed) {
  for (uint32_t i = first; i < first + count; ++i)
    for (uint32_t at = from; at < from + bytes; at += 16) async_reads(memory + factor.at(i, at, transposed), 16);
}

// ---------------------------------------------------------------------------------------------------------------
// Elements and sums

using approximate::bits_of;
using approximate::of_bits;
SIMT_NOT_TRACED inline int exponent_of(float x) { return static_cast<int>(bits_of(x) >> 23 & 0xff) - 127; }

template <typename Bits_, typename Value_ = float, bool truncates_ = false>
struct WgmmaTypes {
  using Bits = Bits_;
  using Value = Value_;
  static constexpr bool truncates = truncates_;
};
// A narrow number's fields, in the place of a float's, are the number divided by 2^112 or 2^120.
struct WgmmaBf16 : WgmmaTypes<uint16_t> {
  SIMT_NOT_TRACED __attribute__((always_inline)) static float decode(uint32_t code) { return of_bits(code << 16); }
};
struct WgmmaF16 : WgmmaTypes<uint16_t> {
  SIMT_NOT_TRACED __attribute__((always_inline)) static float decode(uint32_t code) {
    const uint32_t sign = (code & 0x8000u) << 16, fields = (code & 0x7fffu) << 13;
    return fields >= 0x0f800000u ? of_bits(sign | 0x7f800000u | fields) : of_bits(sign | fields) * 0x1p112f;
  }
};
struct WgmmaE4m3 : WgmmaTypes<uint8_t, float, true> {
  SIMT_NOT_TRACED __attribute__((always_inline)) static float decode(uint32_t code) {
    const uint32_t sign = (code & 0x80u) << 24, fields = (code & 0x7fu) << 20;
    return (code & 0x7fu) == 0x7fu ? __builtin_nanf("") : of_bits(sign | fields) * 0x1p120f;
  }
};
struct WgmmaE5m2 : WgmmaTypes<uint8_t, float, true> {
  SIMT_NOT_TRACED __attribute__((always_inline)) static float decode(uint32_t code) {
    return WgmmaF16::decode(code << 8);
  }
};
struct WgmmaTf32 : WgmmaTypes<uint32_t> {  // whose last 13 bits count for nothing
  SIMT_NOT_TRACED __attribute__((always_inline)) static float decode(uint32_t code) { return of_bits(code & ~0x1fffu); }
};
template <typename T>
struct WgmmaInteger : WgmmaTypes<uint8_t, int32_t> {
  SIMT_NOT_TRACED __attribute__((always_inline)) static int32_t decode(uint32_t code) { return static_cast<T>(code); }
};

template <typename Format>
inline constexpr int kDepth = kFactorBytes / static_cast<int>(sizeof(typename Format::Bits));  // of an instruction

template <typename Format, bool transposed>
SIMT_NOT_TRACED typename Format::Value element(const char* memory, const Descriptor& factor, int line, int k) {
  constexpr uint32_t size = sizeof(typename Format::Bits);
  const auto i = static_cast<uint32_t>(line), j = static_cast<uint32_t>(k);
  typename Format::Bits code;
  __builtin_memcpy(&code, memory + (transposed ? factor.at(j, i * size, true) : factor.at(i, j * size, false)), size);
  return Format::decode(code);
}

template <typename Value>
SIMT_NOT_TRACED Value summed(Value sum, const Value* row, const Value* column, int count) {
  for (int k = 0; k < count; ++k) sum += row[k] * column[k];
  return sum;
}
// Each term is truncated to a multiple of 2^-13 of the largest power of two in a term (of a product: of its factors),
// and so is the result, to 13 bits of fraction.
SIMT_NOT_TRACED inline float truncated_sum(float sum, const float* row, const float* column, int count) {
  int top = exponent_of(sum);
  for (int k = 0; k < count; ++k) {
    const int of_product = exponent_of(row[k]) + exponent_of(column[k]);
    if (of_product > top) top = of_product;
  }
  if (top < -60 || top > 60) return summed(sum, row, column, count);  // all zeros, or a NaN
  const float unit = of_bits(static_cast<uint32_t>(top - 13 + 127) << 23);
  const float units = of_bits(static_cast<uint32_t>(13 - top + 127) << 23);
  float total = __builtin_truncf(sum * units);
  for (int k = 0; k < count; ++k) total += __builtin_truncf(row[k] * column[k] * units);
  return of_bits(bits_of(total * unit) & ~0x3ffu);
}

// ---------------------------------------------------------------------------------------------------------------
// The part of a product that thread t of a warp group computes: rows 16 * (t / 32) + t % 32 / 4 and 8 further, of every
// 8 columns t % 4 * 2 and the next.

template <typename Format>
struct TwoRows {  // of a
  typename Format::Value of[2][kDepth<Format>];
};

template <typename Format, bool transposed>
SIMT_NOT_TRACED __attribute__((noinline)) void read_rows(TwoRows<Format>& rows, const char* memory, Descriptor a,
                                                         unsigned t) {
  for (int i = 0; i < 2; ++i)
    for (int k = 0; k < kDepth<Format>; ++k)
      rows.of[i][k] = element<Format, transposed>(memory, a, static_cast<int>(t / 32 * 16 + t % 32 / 4) + 8 * i, k);
}

struct LeftRegisters {  // a's, of one lane: as the sums of 16 or 32 columns lie
  uint32_t a[4];
};
template <typename Format>
SIMT_NOT_TRACED __attribute__((noinline)) void gather_rows(TwoRows<Format>& rows, const Lanes<LeftRegisters>& lanes,
                                                           unsigned lane) {
  constexpr int size = sizeof(typename Format::Bits), pack = 4 / size;
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < kDepth<Format>; ++k) {
      const uint32_t word = lanes[lane / 4 * 4 + static_cast<unsigned>(k / pack % 4)].a[k / (4 * pack) * 2 + i];
      rows.of[i][k] = Format::decode(static_cast<typename Format::Bits>(word >> k % pack * 8 * size));
    }
  }
}

constexpr int kGroups = 4;  // of 8 columns, at a time

// Of columns `line` and `line` + 1 of b, and of those of the next groups: columns[group][k][c]. Through pointers, since
// a traced build checks each index of an array.
template <typename Format, bool transposed>
SIMT_NOT_TRACED __attribute__((noinline)) void read_columns(typename Format::Value* columns, const char* memory,
                                                            Descriptor b, int line, int groups) {
  constexpr int depth = kDepth<Format>, size = sizeof(typename Format::Bits), piece = 16 / size;
  typename Format::Bits codes[piece];
  if constexpr (transposed) {  // the two are neighbours
    for (int g = 0; g < groups; ++g) {
      const uint32_t of_byte = b.of_byte(static_cast<uint32_t>((line + 8 * g) * size), true);
      for (int k = 0; k < depth; ++k, columns += 2) {
        __builtin_memcpy(codes, memory + b.at(b.of_line(static_cast<uint32_t>(k), true) + of_byte), 2 * size);
        columns[0] = Format::decode(codes[0]);
        columns[1] = Format::decode(codes[1]);
      }
    }
  } else {
    for (int i = 0; i < 2 * groups; ++i) {
      const int g = i / 2, c = i % 2;
      for (int first = 0; first < depth; first += piece) {
        const uint32_t at = b.at(static_cast<uint32_t>(line + 8 * g + c), static_cast<uint32_t>(first * size), false);
        __builtin_memcpy(codes, memory + at, 16);
        auto* const to = columns + 2 * (depth * g + first) + c;
        for (int k = 0; k < piece; ++k) to[2 * k] = Format::decode(codes[k]);
      }
    }
  }
}

// The products of two rows and of two columns, for each k: rows as {0, 0, 1, 1}, columns as {0, 1, 0, 1}. A sum waits for
// each of its additions, so those of four groups of columns take turns.
template <typename Four, typename Value>
SIMT_NOT_TRACED __attribute__((always_inline)) inline Four twice(const Value* columns) {
  return Four{columns[0], columns[1], columns[0], columns[1]};
}
template <int depth, typename Four, typename Value>
SIMT_NOT_TRACED __attribute__((noinline)) void add_in_turn(Four* sums, const Four* rows, const Value* columns) {
  constexpr int next = 2 * depth;
  static_assert(kGroups == 4, "as many sums as below");
  Four a = sums[0], b = sums[1], c = sums[2], d = sums[3];
  for (const Four* const end = rows + depth; rows != end; ++rows, columns += 2) {
    a += *rows * twice<Four>(columns);
    b += *rows * twice<Four>(columns + next);
    c += *rows * twice<Four>(columns + 2 * next);
    d += *rows * twice<Four>(columns + 3 * next);
  }
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

// d[4 * j + 2 * i + c] is the sum of row i and of column c of the 8 columns from 8 * j on. sign: 1, or -1 to subtract.
template <typename A, typename B, bool transposed>
SIMT_NOT_TRACED __attribute__((noinline)) void add_products(typename A::Value* d, int n, const TwoRows<A>& rows,
                                                            const char* memory, Descriptor b, bool add,
                                                            typename A::Value sign, unsigned t) {
  static_assert(kDepth<A> == kDepth<B>, "both factors have as many elements along k");
  using Value = typename A::Value;
  typedef Value Four __attribute__((vector_size(4 * sizeof(Value))));
  constexpr int depth = kDepth<A>;
  Four both_rows[depth];
  for (int k = 0; k < depth; ++k)
    both_rows[k] = Four{rows.of[0][k], rows.of[0][k], rows.of[1][k], rows.of[1][k]} * sign;
  Value columns[kGroups][depth][2] = {};
  for (int first = 0; first < n / 8; first += kGroups) {
    const int groups = n / 8 - first < kGroups ? n / 8 - first : kGroups;
    Four sums[kGroups] = {};
    read_columns<B, transposed>(&columns[0][0][0], memory, b, 8 * first + static_cast<int>(t % 4) * 2, groups);
    for (int g = 0; add && g < groups; ++g) __builtin_memcpy(sums + g, d + 4 * (first + g), sizeof(Four));
    if constexpr (B::truncates) {
      for (int g = 0; g < groups; ++g) {
        for (int of = 0; of < 4; ++of) {
          Value column[depth];
          for (int k = 0; k < depth; ++k) column[k] = sign * columns[g][k][of % 2];
          sums[g][of] = truncated_sum(sums[g][of], rows.of[of / 2], column, depth);
        }
      }
    } else {
      add_in_turn<depth>(sums, both_rows, &columns[0][0][0]);
    }
    for (int g = 0; g < groups; ++g) __builtin_memcpy(d + 4 * (first + g), sums + g, sizeof(Four));
  }
}

}  // namespace simt
