// vector.h: neighbouring elements that one access moves: 16, 8, 4 or 2 bytes.
//
// 16 bytes, a thread's widest access, hold 2 doubles, 4 floats or 8 halves: a warp
// requests 512 neighbouring bytes in one instruction. Pointers must be multiples of the
// vector's size, but for load_anywhere. The caller handles the elements that do not
// fill a vector.
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

// The same bits as a To.
template <typename To, typename From>
__device__ To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "all bits, and no others");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// region anywhere
// The 16 bytes that begin `offset` bytes after low's start; high has the next 16.
__device__ inline uint4 shifted(uint4 low, uint4 high, int offset) {
  unsigned int w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int step = 2; step > 0; step /= 2) {  // whole words
    bool far = offset & (4 * step);
#pragma unroll
    for (int j = 0; j + step < 8; ++j) w[j] = far ? w[j + step] : w[j];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) w[j] = __funnelshift_r(w[j], w[j + 1], offset % 4 * 8);
  return {w[0], w[1], w[2], w[3]};
}

// Elements i to i + size - 1 of the n elements of p, at any address. The two aligned
// words in which they lie are read and shifted into place, unless one reaches beyond p:
// then elements are read one by one, and those beyond p are 0. i is one of p's.
template <typename T>
__device__ Vector<T> load_anywhere(const T* p, int64_t i, int64_t n) {
  constexpr int size = Vector<T>::size;
  int offset = reinterpret_cast<uintptr_t>(p + i) % 16;
  if (offset == 0 && i + size <= n) return Vector<T>::load(p + i, 0);
  int64_t begin = i - offset / int(sizeof(T));
  uint4 word = {};
  if (begin >= 0 && begin + 2 * size <= n) {
    auto words = reinterpret_cast<const uint4*>(p + begin);
    word = shifted(words[0], words[1], offset);
  } else {
#pragma unroll 1
    for (int64_t j = i; j < i + size; ++j) {  // each is shifted in from above
      T element{};
      if (j < n) element = p[j];  // nvcc's memcpy would load it byte by byte
      uint4 next = {};
      memcpy(&next, &element, sizeof(T));
      word = shifted(word, next, sizeof(T));
    }
  }
  return bits_as<Vector<T>>(word);
}

// Vector v of those that begin with element `first` of p; n: of p's elements.
template <bool aligned, typename T>
__device__ Vector<T> load(const T* __restrict__ p, int64_t first, int64_t v,
                          int64_t n) {
  if constexpr (aligned) return Vector<T>::load(p + first, v);
  return load_anywhere(p, first + v * Vector<T>::size, n);
}
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

// Calls go(true as a type) if every row of `columns` elements begins at a multiple of
// 16 bytes at these pointers, else go(false as a type).
template <typename T, typename Go, typename... Pointers>
void with_alignment(int64_t columns, Go go, Pointers... pointers) {
  if (columns % Vector<T>::size == 0 && all_aligned_to(16, pointers...)) {
    go(std::true_type());
  } else {
    go(std::false_type());
  }
}

}  // namespace ladder
