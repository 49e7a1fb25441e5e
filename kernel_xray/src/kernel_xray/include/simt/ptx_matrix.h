// ptx_matrix.h: ldmatrix, stmatrix and movmatrix of inline PTX.
//
// Lanes hold the elements that the PTX ISA gives them. Each lane reads or writes the row of 16 bytes whose address it
// passes, so that an X-ray counts one request of 16 bytes per lane, as for the hardware's ldmatrix.
#pragma once

#include "ptx_memory.h"
#include "tensor_core_sum.h"

namespace simt::ptx {

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

}  // namespace simt::ptx
