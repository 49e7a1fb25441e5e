// vector.h: neighbouring elements that one access moves: 16, 8, 4 or 2 bytes.
//
// 16 bytes, a thread's widest access, hold 2 doubles, 4 floats or 8 halves: a warp
// requests 512 neighbouring bytes in one instruction. Pointers must be multiples of the
// vector's size. The caller handles the elements that do not fill a vector.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ladder {

// The built-in type of this size. The access goes through it, so that the compiler
// cannot split it.
template <int bytes>
struct Word;
template <>
struct Word<16> {
  using type = uint4;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<2> {
  using type = unsigned short;
};

// region vector
template <typename T, int bytes = 16>
struct Vector {
  static_assert(bytes % sizeof(T) == 0, "a vector holds a whole number of elements");
  static constexpr int size = bytes / sizeof(T);
  T at[size];

  // Elements i * size to (i + 1) * size - 1 of p.
  __device__ static Vector load(const T* p, int64_t i) {
    auto word = reinterpret_cast<const typename Word<bytes>::type*>(p)[i];
    Vector v;
    memcpy(&v, &word, bytes);
    return v;
  }

  __device__ void store(T* p, int64_t i) const {
    typename Word<bytes>::type word;
    memcpy(&word, this, bytes);
    reinterpret_cast<typename Word<bytes>::type*>(p)[i] = word;
  }
};
// endregion

// True if all pointers are multiples of `bytes`. A tensor that PyTorch allocates is; a
// slice such as x[1:] need not be.
template <typename... T>
inline bool all_aligned_to(int bytes, const T*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % bytes == 0) && ...);
}

// A number as a type, for a lambda that needs it at compile time.
template <int number>
using Constant = std::integral_constant<int, number>;

// Calls go(bytes as a Constant) with the widest access that these pointers and rows of
// `columns` elements allow: 16 bytes, or one element.
template <typename T, typename Go, typename... Pointers>
void with_widest(int64_t columns, Go go, Pointers... pointers) {
  bool whole = columns % Vector<T>::size == 0 && all_aligned_to(16, pointers...);
  if (whole) {
    go(Constant<16>());
  } else {
    go(Constant<sizeof(T)>());
  }
}

}  // namespace ladder
