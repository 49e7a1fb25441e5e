// mma.h: nvcuda::wmma, the warp's matrix product, for factors of float16, bfloat16 and integers of 8 bits.
//
// Sums are rounded as Hopper's tensor cores do (simt/tensor_core.h). The shapes are m16n16k16, m32n8k16 and m8n32k16,
// with float or, for __half factors, __half accumulators; integers have int. A fragment has as many elements per lane as
// on a GPU. CUDA does not document which elements of the matrix these are, and they differ here: only code that treats
// all elements alike is portable.
//
// Memory is read and written in the same pieces as by nvcc's code (ldmatrix and pairs), so that an X-ray counts the
// cost of a GPU's access pattern; for factors of integers that pattern is not known, and a lane reads its own elements.
// TF32 and float64 fragments are not simulated. Those of integers of 4 bits and of single bits have names here, for code
// that declares them; their product is a fault.
#pragma once
#define __CUDA_MMA_H__

#include <cstdint>
#include <type_traits>

#include "cuda_runtime.h"
#include "simt/tensor_core.h"

namespace nvcuda::wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };

namespace detail {

template <int m, int n, int k>
constexpr bool is_shape = k == 16 && ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32));

// The elements per lane of a factor with `lines` rows of a or columns of b.
template <typename T>
constexpr int factor_elements(int lines) {
  return std::is_same_v<T, __half> ? 16 : lines * 16 / 32;
}

template <int m, int n, int k, typename T, int elements>
struct Elements {
  static_assert(is_shape<m, n, k>, "the simulator has wmma shapes m16n16k16, m32n8k16 and m8n32k16");
  using element_type = T;
  enum { num_elements = elements, num_storage_elements = elements };
  T x[elements];
};

}  // namespace detail

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
class fragment;

// Element e of a lane is element (lane * num_elements + e) of the matrix, counted by rows in a and by columns in b. In
// a __half fragment of 16 lines, lane 16 holds the same elements as lane 0, and so on.
template <int m, int n, int k, typename T, typename Layout>
class fragment<matrix_a, m, n, k, T, Layout> : public detail::Elements<m, n, k, T, detail::factor_elements<T>(m)> {};
template <int m, int n, int k, typename T, typename Layout>
class fragment<matrix_b, m, n, k, T, Layout> : public detail::Elements<m, n, k, T, detail::factor_elements<T>(n)> {};
template <int m, int n, int k, typename T>
class fragment<accumulator, m, n, k, T, void> : public detail::Elements<m, n, k, T, m * n / 32> {};

namespace detail {

// ldm counts elements. CUDA requires a pointer at a multiple of 32 bytes and lines of whole 16 bytes.
template <typename T>
inline void check_address(const T* p, unsigned ldm) {
  if (reinterpret_cast<uintptr_t>(p) % 32 != 0)
    ::simt::fault("misaligned", "a wmma load or store needs an address that is a multiple of 32 bytes");
  if (ldm * sizeof(T) % 16 != 0)
    ::simt::fault("misaligned", "a wmma load or store needs a leading dimension of whole 16 bytes");
}

// A lane reads and writes other pieces of memory than its fragment holds, so lanes exchange pieces. A piece of a factor
// is 8 contiguous elements: a row of an 8 x 8 matrix of ldmatrix. Each line has two pieces.
struct FactorPlace {
  int lane, piece, element;

  // The place of the element at (row, column) of the matrix as stored in memory, which has `rows` rows.
  SIMT_NOT_TRACED FactorPlace(int row, int column, int rows) {
    const int q = (column / 8 * (rows / 8) + row / 8) * 8 + row % 8;
    lane = q % ::simt::kWarpSize;
    piece = q / ::simt::kWarpSize;
    element = column % 8;
  }
};
template <typename T, int pieces>
struct Pieces {
  uint4 of[pieces];
  SIMT_NOT_TRACED T at(int piece, int element) const {
    T value;
    __builtin_memcpy(&value, reinterpret_cast<const char*>(&of[piece]) + element * sizeof(T), sizeof(T));
    return value;
  }
};

template <int lines, typename T, int pieces>
SIMT_NOT_TRACED __attribute__((noinline)) void deal_factor(T* x, int count, int lane,
                                                           const ::simt::Lanes<Pieces<T, pieces>>& lanes,
                                                           bool lines_in_memory) {
  for (int e = 0; e < count; ++e) {
    const int element = lane * count % (lines * 16) + e, line = element / 16, at = element % 16;
    const FactorPlace place = lines_in_memory ? FactorPlace(line, at, lines) : FactorPlace(at, line, 16);
    x[e] = lanes[place.lane].at(place.piece, place.element);
  }
}

// Loads a factor with `lines` lines of 16 elements. These are contiguous in memory if `lines_in_memory`, else `ldm`
// apart.
template <int lines, typename T>
inline void load_factor(T* x, int count, const T* p, unsigned ldm, bool lines_in_memory) {
  if constexpr (sizeof(T) == 1) {  // a lane's elements are of one line
    constexpr int own = lines * 16 / ::simt::kWarpSize;
    const int first = static_cast<int>(::simt::lane()) * own, line = first / 16, at = first % 16;
    struct alignas(own) Own {
      T of[own];
    } read;
    if (lines_in_memory) {
      read = *reinterpret_cast<const Own*>(p + size_t(line) * ldm + at);
    } else {
      for (int e = 0; e < own; ++e) read.of[e] = p[size_t(at + e) * ldm + line];
    }
    for (int e = 0; e < own; ++e) x[e] = read.of[e];
    return;
  }
  constexpr int in_all = 2 * lines, each = (in_all + ::simt::kWarpSize - 1) / ::simt::kWarpSize;
  const int lane = static_cast<int>(::simt::lane()), rows = lines_in_memory ? lines : 16;
  Pieces<T, each> own = {};
  for (int i = 0; i < each; ++i) {
    const int q = i * ::simt::kWarpSize + lane, row = q / 8 % (rows / 8) * 8 + q % 8, column = q / 8 / (rows / 8) * 8;
    if (q < in_all) own.of[i] = *reinterpret_cast<const uint4*>(p + size_t(row) * ldm + column);
  }
  const ::simt::Lanes<Pieces<T, each>> lanes(own);
  deal_factor<lines>(x, count, lane, lanes, lines_in_memory);
}

// Of each 8 x 8 block of an accumulator, a lane moves two neighbours in a row, as in mma.sync: row lane / 4, columns
// lane % 4 * 2 and the next. They are contiguous in memory if rows are.
template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T of[2];
};
template <int m, int n>
struct AccumulatorPlace {
  int row, column;
  SIMT_NOT_TRACED AccumulatorPlace(int block, int lane)
      : row(block / (n / 8) * 8 + lane / 4), column(block % (n / 8) * 8 + lane % 4 * 2) {}
};
template <typename T, int count>
struct Moved {
  Pair<T> of[count / 2];
};

template <int m, int n, int count, typename T>
SIMT_NOT_TRACED __attribute__((noinline)) void deal_accumulator(T* x, int lane,
                                                                const ::simt::Lanes<Moved<T, count>>& lanes) {
  for (int e = 0; e < count; ++e) {
    const int element = lane * count + e, row = element / n, column = element % n;
    const int block = row / 8 * (n / 8) + column / 8, owner = row % 8 * 4 + column % 8 / 2;
    x[e] = lanes[owner].of[block].of[column % 2];
  }
}
template <int m, int n, int count, typename T, typename Fragment>
SIMT_NOT_TRACED __attribute__((noinline)) void take_accumulator(Moved<T, count>& moved, int lane,
                                                                const ::simt::Lanes<Fragment>& lanes) {
  for (int block = 0; block < count / 2; ++block) {
    const AccumulatorPlace<m, n> place(block, lane);
    for (int c = 0; c < 2; ++c) {
      const int element = place.row * n + place.column + c;
      moved.of[block].of[c] = lanes[element / count].x[element % count];
    }
  }
}

}  // namespace detail

template <int m, int n, int k, typename T, typename Layout>
inline void load_matrix_sync(fragment<matrix_a, m, n, k, T, Layout>& a, const T* p, unsigned ldm) {
  detail::check_address(p, ldm);
  detail::load_factor<m>(a.x, a.num_elements, p, ldm, std::is_same_v<Layout, row_major>);
}

template <int m, int n, int k, typename T, typename Layout>
inline void load_matrix_sync(fragment<matrix_b, m, n, k, T, Layout>& b, const T* p, unsigned ldm) {
  detail::check_address(p, ldm);
  detail::load_factor<n>(b.x, b.num_elements, p, ldm, std::is_same_v<Layout, col_major>);
}

template <int m, int n, int k, typename T>
inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& c, const T* p, unsigned ldm, layout_t layout) {
  detail::check_address(p, ldm);
  constexpr int count = m * n / 32;
  const int lane = static_cast<int>(::simt::lane());
  detail::Moved<T, count> own;
  for (int block = 0; block < count / 2; ++block) {
    const detail::AccumulatorPlace<m, n> place(block, lane);
    if (layout == mem_row_major) {
      own.of[block] = *reinterpret_cast<const detail::Pair<T>*>(p + size_t(place.row) * ldm + place.column);
    } else {
      for (int i = 0; i < 2; ++i) own.of[block].of[i] = p[size_t(place.column + i) * ldm + place.row];
    }
  }
  const ::simt::Lanes<detail::Moved<T, count>> lanes(own);
  detail::deal_accumulator<m, n, count>(c.x, lane, lanes);
}

template <int m, int n, int k, typename T>
inline void store_matrix_sync(T* p, const fragment<accumulator, m, n, k, T>& c, unsigned ldm, layout_t layout) {
  detail::check_address(p, ldm);
  constexpr int count = m * n / 32;
  const int lane = static_cast<int>(::simt::lane());
  detail::Moved<T, count> own;
  {
    const ::simt::Lanes<fragment<accumulator, m, n, k, T>> lanes(c);
    detail::take_accumulator<m, n, count>(own, lane, lanes);
  }
  for (int block = 0; block < count / 2; ++block) {
    const detail::AccumulatorPlace<m, n> place(block, lane);
    if (layout == mem_row_major) {
      *reinterpret_cast<detail::Pair<T>*>(p + size_t(place.row) * ldm + place.column) = own.of[block];
    } else {
      for (int i = 0; i < 2; ++i) p[size_t(place.column + i) * ldm + place.row] = own.of[block].of[i];
    }
  }
}

template <typename Fragment, typename T>
inline void fill_fragment(Fragment& f, const T& value) {
  for (int e = 0; e < Fragment::num_elements; ++e) f.x[e] = value;
}

namespace detail {

template <int m, int n, int k, typename T, typename LayoutA, typename LayoutB, typename D, typename C>
SIMT_NOT_TRACED __attribute__((noinline)) void multiply(
    unsigned lane, fragment<accumulator, m, n, k, D>& d,
    const ::simt::Lanes<fragment<matrix_a, m, n, k, T, LayoutA>>& lanes_a,
    const ::simt::Lanes<fragment<matrix_b, m, n, k, T, LayoutB>>& lanes_b, const fragment<accumulator, m, n, k, C>& c,
    bool saturated) {
  constexpr int per_a = factor_elements<T>(m), per_b = factor_elements<T>(n);
  for (int e = 0; e < d.num_elements; ++e) {
    const int element = static_cast<int>(lane) * d.num_elements + e, row = element / n, column = element % n;
    T x[k], y[k];
    for (int i = 0; i < k; ++i) {
      const int of_a = row * k + i, of_b = column * k + i;
      x[i] = lanes_a[of_a / per_a].x[of_a % per_a];
      y[i] = lanes_b[of_b / per_b].x[of_b % per_b];
    }
    if constexpr (std::is_integral_v<T>) {
      int64_t sum = c.x[e];
      for (int i = 0; i < k; ++i) sum += x[i] * y[i];
      if (saturated) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      d.x[e] = static_cast<int>(sum);
    } else {
      ::simt::round_sum(::simt::tensor_core_sum(x, y, k, ::simt::widened(c.x[e])), d.x[e]);
    }
  }
}

}  // namespace detail

// d = a * b + c; each element is one sum of 16 products and c. d and c may be the same fragment. Sums of integers wrap
// around, or end at the limits of an int.
template <int m, int n, int k, typename T, typename LayoutA, typename LayoutB, typename D, typename C>
inline void mma_sync(fragment<accumulator, m, n, k, D>& d, const fragment<matrix_a, m, n, k, T, LayoutA>& a,
                     const fragment<matrix_b, m, n, k, T, LayoutB>& b, const fragment<accumulator, m, n, k, C>& c,
                     bool saturated = false) {
  ::simt::tell_product<T, m * n * k>();
  const ::simt::Lanes<fragment<matrix_a, m, n, k, T, LayoutA>> lanes_a(a);
  const ::simt::Lanes<fragment<matrix_b, m, n, k, T, LayoutB>> lanes_b(b);
  detail::multiply(::simt::lane(), d, lanes_a, lanes_b, c, saturated);
}

namespace experimental {
namespace precision {
struct u4;
struct s4;
struct b1;
}  // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental

template <typename D, typename A, typename B, typename C>
inline void bmma_sync(D&, const A&, const B&, const C&, experimental::bmmaBitOp = experimental::bmmaBitOpXOR,
                      experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC) {
  ::simt::fault("unsupported", "not supported by the simulator: wmma of single bits");
}

}  // namespace nvcuda::wmma
