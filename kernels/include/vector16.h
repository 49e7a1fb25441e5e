// vector16.h: 16 bytes of elements at a time, the widest access of a thread: 2 doubles, 4 floats or 8 halves.
//
// A warp that reads 16 bytes per lane asks for 512 neighbouring bytes in one instruction. Pointers must be multiples of
// 16 bytes (ladder::aligned_to_16 in launch.h); the elements that fill no vector are left to the caller.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace ladder {

template <typename T>
struct Vector16 {
  static_assert(16 % sizeof(T) == 0, "a vector holds a whole number of elements");
  static constexpr int size = 16 / sizeof(T);
  T at[size];
};

// Elements i * size to (i + 1) * size - 1 of p. Through uint4, so that the compiler cannot split the access.
template <typename T>
__device__ inline Vector16<T> load16(const T* p, int64_t i) {
  uint4 bits = reinterpret_cast<const uint4*>(p)[i];
  Vector16<T> v;
  memcpy(&v, &bits, 16);
  return v;
}

template <typename T>
__device__ inline void store16(T* p, int64_t i, const Vector16<T>& v) {
  uint4 bits;
  memcpy(&bits, &v, 16);
  reinterpret_cast<uint4*>(p)[i] = bits;
}

// True if all of the pointers are multiples of 16 bytes. What PyTorch allocates is; a slice such as x[1:] need not be.
template <typename... T>
inline bool all_aligned_to_16(const T*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace ladder
