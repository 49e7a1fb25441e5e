// mma.h: nvcuda::wmma, the warp's matrix product, for float16 and bfloat16 factors.
//
// The sums are those of Hopper's tensor cores: see simt/tensor_core.h. Shapes m16n16k16, m32n8k16 and m8n32k16, with
// float or, for __half factors, __half accumulators. A fragment has as many elements per lane as on a GPU. Which of the
// matrix they are is not documented there, and is another choice here: only what treats all elements alike is portable.
//
// A lane reads and writes its elements 16 bytes at a time where they lie together; what the X-ray counts for these
// lines is not what a GPU's own order of access costs. Integer, TF32 and float64 fragments are not simulated.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda_runtime.h"
#include "simt/tensor_core.h"

namespace nvcuda {
namespace wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };

namespace detail {

template <int m, int n, int k>
constexpr bool is_shape = k == 16 && ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32));

// How many elements of a factor with `lines` rows of a, or columns of b, a lane has.
template <typename T>
constexpr int factor_elements(int lines) {
  return std::is_same_v<T, __half> ? 16 : lines * 16 / 32;
}

template <typename T, int elements>
struct Elements {
  using element_type = T;
  enum { num_elements = elements, num_storage_elements = elements };
  T x[elements];
};

}  // namespace detail

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
class fragment;

// Element e of a lane is number (lane * num_elements + e) of the matrix, of a by rows, of b by columns; a __half
// fragment of 16 lines begins anew at its 17th lane.
template <int m, int n, int k, typename T, typename Layout>
class fragment<matrix_a, m, n, k, T, Layout> : public detail::Elements<T, detail::factor_elements<T>(m)> {
  static_assert(detail::is_shape<m, n, k>, "the simulator has wmma shapes m16n16k16, m32n8k16 and m8n32k16");
};
template <int m, int n, int k, typename T, typename Layout>
class fragment<matrix_b, m, n, k, T, Layout> : public detail::Elements<T, detail::factor_elements<T>(n)> {
  static_assert(detail::is_shape<m, n, k>, "the simulator has wmma shapes m16n16k16, m32n8k16 and m8n32k16");
};
template <int m, int n, int k, typename T>
class fragment<accumulator, m, n, k, T, void> : public detail::Elements<T, m * n / 32> {
  static_assert(detail::is_shape<m, n, k>, "the simulator has wmma shapes m16n16k16, m32n8k16 and m8n32k16");
};

namespace detail {

// Where a run of elements that lie together is copied in words of 16 bytes if it can be.
template <typename T>
inline void copy_run(T* to, const T* from, int count) {
  constexpr int each = 16 / sizeof(T);
  int i = 0;
  if (reinterpret_cast<uintptr_t>(to) % 16 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    for (; i + each <= count; i += each) *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(from + i);
  }
  for (; i < count; ++i) to[i] = from[i];
}

// ldm counts elements. CUDA asks for a pointer at a multiple of 32 bytes and lines of whole 16 bytes.
template <typename T>
inline void check_address(const T* p, unsigned ldm) {
  if (reinterpret_cast<uintptr_t>(p) % 32 != 0)
    ::simt::fault("misaligned", "a wmma load or store needs an address that is a multiple of 32 bytes");
  if (ldm * sizeof(T) % 16 != 0)
    ::simt::fault("misaligned", "a wmma load or store needs a leading dimension of whole 16 bytes");
}

// The elements of a lane in a matrix of `lines` lines of `length`, where a line's elements lie `step`, lines `ldm`
// apart.
template <bool store, typename X, typename Pointer>
inline void move_elements(X x, int count, Pointer p, int lines, int length, unsigned ldm, bool lines_in_memory) {
  const int first = static_cast<int>(::simt::lane()) * count % (lines * length);
  for (int e = 0; e < count;) {
    const int line = (first + e) / length, at = (first + e) % length;
    const int run = lines_in_memory ? (length - at < count - e ? length - at : count - e) : 1;
    const size_t place = lines_in_memory ? size_t(line) * ldm + at : size_t(at) * ldm + line;
    if constexpr (store) {
      copy_run(p + place, x + e, run);
    } else {
      copy_run(x + e, p + place, run);
    }
    e += run;
  }
}

}  // namespace detail

template <int m, int n, int k, typename T, typename Layout>
inline void load_matrix_sync(fragment<matrix_a, m, n, k, T, Layout>& a, const T* p, unsigned ldm) {
  detail::check_address(p, ldm);
  __syncwarp();
  detail::move_elements<false>(a.x, a.num_elements, p, m, k, ldm, std::is_same_v<Layout, row_major>);
}

template <int m, int n, int k, typename T, typename Layout>
inline void load_matrix_sync(fragment<matrix_b, m, n, k, T, Layout>& b, const T* p, unsigned ldm) {
  detail::check_address(p, ldm);
  __syncwarp();
  detail::move_elements<false>(b.x, b.num_elements, p, n, k, ldm, std::is_same_v<Layout, col_major>);
}

template <int m, int n, int k, typename T>
inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& c, const T* p, unsigned ldm, layout_t layout) {
  detail::check_address(p, ldm);
  __syncwarp();
  detail::move_elements<false>(c.x, c.num_elements, p, m, n, ldm, layout == mem_row_major);
}

template <int m, int n, int k, typename T>
inline void store_matrix_sync(T* p, const fragment<accumulator, m, n, k, T>& c, unsigned ldm, layout_t layout) {
  detail::check_address(p, ldm);
  __syncwarp();
  detail::move_elements<true>(c.x, c.num_elements, p, m, n, ldm, layout == mem_row_major);
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
    const ::simt::Lanes<fragment<matrix_b, m, n, k, T, LayoutB>>& lanes_b, const fragment<accumulator, m, n, k, C>& c) {
  constexpr int per_a = factor_elements<T>(m), per_b = factor_elements<T>(n);
  for (int e = 0; e < d.num_elements; ++e) {
    const int number = static_cast<int>(lane) * d.num_elements + e, row = number / n, column = number % n;
    T x[k], y[k];
    for (int i = 0; i < k; ++i) {
      const int of_a = row * k + i, of_b = column * k + i;
      x[i] = lanes_a[of_a / per_a].x[of_a % per_a];
      y[i] = lanes_b[of_b / per_b].x[of_b % per_b];
    }
    ::simt::round_sum(::simt::tensor_core_sum(x, y, k, ::simt::widened(c.x[e])), d.x[e]);
  }
}

}  // namespace detail

// d = a * b + c, each element by one sum of 16 products and c. d and c may be the same.
template <int m, int n, int k, typename T, typename LayoutA, typename LayoutB, typename D, typename C>
inline void mma_sync(fragment<accumulator, m, n, k, D>& d, const fragment<matrix_a, m, n, k, T, LayoutA>& a,
                     const fragment<matrix_b, m, n, k, T, LayoutB>& b, const fragment<accumulator, m, n, k, C>& c) {
  const ::simt::Lanes<fragment<matrix_a, m, n, k, T, LayoutA>> lanes_a(a);
  const ::simt::Lanes<fragment<matrix_b, m, n, k, T, LayoutB>> lanes_b(b);
  detail::multiply(::simt::lane(), d, lanes_a, lanes_b, c);
}

}  // namespace wmma
}  // namespace nvcuda
