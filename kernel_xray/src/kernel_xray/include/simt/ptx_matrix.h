// ptx_matrix.h: the matrix instructions of inline PTX: ldmatrix, stmatrix, movmatrix and mma.sync.
//
// Lanes hold the elements that the PTX ISA gives them. Sums are those of Hopper's tensor cores (tensor_core_sum.h), for
// tf32 too; integer sums are exact. Each lane reads or writes the row of 16 bytes whose address it passes, so that
// an X-ray counts one request of 16 bytes per lane, as for the hardware's ldmatrix.
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

// ---------------------------------------------------------------------------------------------------------------
// Matrices of 8 x 8 elements of 16 bits. Lane l holds row l / 4, columns l % 4 * 2 and the next.

struct Row {
  uint16_t of[8];
};
template <int count>
struct Fragments {  // of `count` matrices, for one lane
  uint32_t of[count];
};

// Matrix i has the rows of lanes 8 * i to 8 * i + 7.
template <int count>
SIMT_NOT_TRACED __attribute__((noinline)) void deal(Fragments<count>& own, const Lanes<Row>& rows, unsigned lane,
                                                    bool transposed) {
  for (int i = 0; i < count; ++i) {
    uint32_t pair[2];
    for (unsigned c = 0; c < 2; ++c) {
      const unsigned one = lane / 4, two = lane % 4 * 2 + c;
      pair[c] = transposed ? rows[8 * i + two].of[one] : rows[8 * i + one].of[two];
    }
    own.of[i] = pair[0] | pair[1] << 16;
  }
}
// The row of this lane.
template <int count>
SIMT_NOT_TRACED __attribute__((noinline)) void gather(Row& row, const Lanes<Fragments<count>>& lanes, unsigned lane,
                                                      bool transposed) {
  const unsigned i = lane / 8 % count, own = lane % 8;
  for (unsigned column = 0; column < 8; ++column) {
    const unsigned one = transposed ? column : own, two = transposed ? own : column;
    row.of[column] = static_cast<uint16_t>(lanes[one * 4 + two / 2].of[i] >> two % 2 * 16);
  }
}

SIMT_NOT_TRACED __attribute__((noinline)) inline void set_row(Row& row, Halves from) {
  __builtin_memcpy(&row, &from, sizeof row);
}
SIMT_NOT_TRACED __attribute__((noinline)) inline Halves halves_of(const Row& row) {
  Halves result;
  __builtin_memcpy(&result, &row, sizeof row);
  return result;
}

template <typename Space>
SIMT_PTX char* row_pointer(uint64_t address) {
  char* const p = pointer<Space>(address);
  if (reinterpret_cast<uintptr_t>(p) % sizeof(Row))
    fault("misaligned", "ldmatrix and stmatrix access rows of 16 bytes at multiples of 16 bytes");
  return p;
}
template <int count>
SIMT_PTX bool has_row() {  // the address of this lane counts
  if constexpr (8 * count < kWarpSize) return lane() < 8 * count;
  return true;
}

template <typename Space, bool transposed, typename A, typename... D>
SIMT_PTX void load_matrices(A address, D&&... d) {
  constexpr int count = sizeof...(D);
  Row own{};
  if (has_row<count>()) set_row(own, read<0, 16>(row_pointer<Space>(address)));
  Fragments<count> fragments;
  {
    const Lanes<Row> rows(own);
    deal<count>(fragments, rows, lane(), transposed);
  }
  int i = 0;
  (put<uint32_t>(d, fragments.of[i++]), ...);
}
template <typename Space, unsigned flags, typename A, typename... D>
SIMT_PTX void op_ldmatrix(A address, D&&... d) {
  load_matrices<Space, false>(address, d...);
}
template <typename Space, unsigned flags, typename A, typename... D>
SIMT_PTX void op_ldmatrix_trans(A address, D&&... d) {
  load_matrices<Space, true>(address, d...);
}

template <typename Space, bool transposed, typename A, typename... S>
SIMT_PTX void store_matrices(A address, const S&... s) {
  constexpr int count = sizeof...(S);
  const Fragments<count> fragments = {{get<uint32_t>(s)...}};
  Row own{};
  {
    const Lanes<Fragments<count>> lanes(fragments);
    gather<count>(own, lanes, lane(), transposed);
  }
  if (has_row<count>()) write<0, 16>(row_pointer<Space>(address), halves_of(own));
}
template <typename Space, unsigned flags, typename A, typename... S>
SIMT_PTX void op_stmatrix(A address, const S&... s) {
  store_matrices<Space, false>(address, s...);
}
template <typename Space, unsigned flags, typename A, typename... S>
SIMT_PTX void op_stmatrix_trans(A address, const S&... s) {
  store_matrices<Space, true>(address, s...);
}

SIMT_NOT_TRACED __attribute__((noinline)) inline uint32_t transposed_pair(const Lanes<Fragments<1>>& lanes,
                                                                          unsigned lane) {
  uint32_t pair = 0;
  for (unsigned c = 0; c < 2; ++c) {
    const unsigned row = lane % 4 * 2 + c, column = lane / 4;
    pair |= (lanes[row * 4 + column / 2].of[0] >> column % 2 * 16 & 0xffffu) << 16 * c;
  }
  return pair;
}
template <unsigned flags, typename D, typename A>
SIMT_PTX void op_movmatrix(D&& d, const A& a) {
  const Fragments<1> own = {{get<uint32_t>(a)}};
  const Lanes<Fragments<1>> lanes(own);
  put<uint32_t>(d, transposed_pair(lanes, lane()));
}

// ---------------------------------------------------------------------------------------------------------------
// mma.sync. A register of a factor holds `pack` elements along k. Lane l has, of a, rows l / 4 and l / 4 + 8, and of b,
// column l / 4: elements l % 4 * pack and on, and the same 4 * pack further along k. Of c and d it has rows l / 4 and
// l / 4 + 8, columns l % 4 * 2 and the next.

template <typename T>
struct Element {  // of a factor
  static constexpr int pack = 4 / sizeof(T);
};

template <int registers_a, int registers_b>
struct Factors {
  uint32_t a[registers_a], b[registers_b];

  SIMT_NOT_TRACED __attribute__((noinline)) explicit Factors(const uint32_t* registers) {
    for (int i = 0; i < registers_a; ++i) a[i] = registers[i];
    for (int i = 0; i < registers_b; ++i) b[i] = registers[registers_a + i];
  }
};

template <typename T>
SIMT_NOT_TRACED T element_of(uint32_t word, int i) {
  const auto bits = static_cast<Bits<sizeof(T)>>(word >> (8 * sizeof(T) * i) % 32);
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

template <bool saturate>
SIMT_NOT_TRACED int32_t whole_sum(int64_t sum) {
  if (saturate && sum > INT32_MAX) return INT32_MAX;
  if (saturate && sum < INT32_MIN) return INT32_MIN;
  return static_cast<int32_t>(sum);
}

template <typename S, typename TD, typename TA, typename TB, typename TC, bool saturate, int na, int nb, int nd>
SIMT_NOT_TRACED __attribute__((noinline)) void multiply(uint32_t (&d)[nd], const Lanes<Factors<na, nb>>& lanes,
                                                        const uint32_t* c, unsigned lane) {
  constexpr int pack = Element<TA>::pack, rows = S::m / 8;
  TA x_of[rows][S::k];
  TB y_of[2][S::k];
  for (int k = 0; k < S::k; ++k) {
    const int part = k / (4 * pack), from = k / pack % 4;
    for (int i = 0; i < rows; ++i) x_of[i][k] = element_of<TA>(lanes[lane / 4 * 4 + from].a[part * rows + i], k % pack);
    for (int i = 0; i < 2; ++i) y_of[i][k] = element_of<TB>(lanes[(lane % 4 * 2 + i) * 4 + from].b[part], k % pack);
  }
  [[maybe_unused]] Decoded x_decoded[rows][S::k], y_decoded[2][S::k];  // once for all sums
  if constexpr (!std::is_same_v<TD, int32_t>) {
    for (int i = 0; i < rows; ++i) decode_all(x_of[i], S::k, x_decoded[i]);
    for (int i = 0; i < 2; ++i) decode_all(y_of[i], S::k, y_decoded[i]);
  }
  for (int i = 0; i < 2 * rows; ++i) {  // row lane / 4 + i / 2 * 8, column lane % 4 * 2 + i % 2
    const TA* const x = x_of[i / 2];
    const TB* const y = y_of[i % 2];
    if constexpr (std::is_same_v<TD, int32_t>) {
      int64_t sum = static_cast<int32_t>(c[i]);
      for (int k = 0; k < S::k; ++k) sum += int32_t{x[k]} * int32_t{y[k]};
      d[i] = static_cast<uint32_t>(whole_sum<saturate>(sum));
    } else {
      float start, result;
      if constexpr (std::is_same_v<TC, float>)
        __builtin_memcpy(&start, &c[i], 4);
      else
        start = Binary16::decode(static_cast<uint16_t>(c[i / 2] >> i % 2 * 16));
      const TensorCoreSum sum = tensor_core_sum(x, y, x_decoded[i / 2], y_decoded[i % 2], S::k, start);
      if constexpr (std::is_same_v<TD, float>) {
        round_sum(sum, result);
        __builtin_memcpy(&d[i], &result, 4);
      } else {
        result = sum.is_special ? sum.special
                                : detail::to_odd_float(__builtin_ldexp(static_cast<double>(sum.sum), sum.exponent));
        if (i % 2 == 0) d[i / 2] = 0;
        d[i / 2] |= uint32_t{Binary16::encode(result)} << i % 2 * 16;
      }
    }
  }
}

// A number in the text is an element of c, which no result goes to.
template <typename R>
SIMT_PTX void put_word(R& to, uint32_t word) {
  if constexpr (std::is_same_v<R, uint32_t>) to = word;
}

template <typename S, typename TD, typename TA, typename TB, typename TC, unsigned flags, typename... R>
SIMT_PTX void op_mma(R&&... r) {
  constexpr int factor = S::k / 4 / Element<TA>::pack, na = S::m / 8 * factor, nb = factor;
  constexpr int nd = S::m / 8 * (sizeof(TD) == 2 ? 1 : 2), nc = S::m / 8 * (sizeof(TC) == 2 ? 1 : 2);
  static_assert(sizeof...(R) == nd + na + nb + nc, "mma.sync has another number of registers for this shape");
  const uint32_t all[] = {get<uint32_t>(r)...};
  tell_product<TA, S::m * S::n * S::k>();
  const Factors<na, nb> own(all + nd);
  uint32_t d[nd];
  {
    const Lanes<Factors<na, nb>> lanes(own);
    multiply<S, TD, TA, TB, TC, (flags & kFinite) != 0>(d, lanes, all + nd + na + nb, lane());
  }
  int i = 0;
  ((i < nd ? put_word(r, d[i]) : void(), ++i), ...);
}

}  // namespace ptx
}  // namespace simt
