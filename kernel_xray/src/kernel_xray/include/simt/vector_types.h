// vector_types.h: CUDA's built-in vector types (char1 .. double4) with CUDA's alignments, and make_* for each.
//
// They are aggregates as in CUDA: `float4{1, 2, 3, 4}` works and `a + b` does not. The alignment is what makes the
// copy of a float4 one 16-byte access. uint3 and dim3 live in core.h.
#pragma once

#include "whole.h"

#define SIMT_VECTOR_1(scalar, name, alignment) \
  struct alignas(alignment) name {             \
    scalar x;                                  \
  };                                           \
  inline constexpr name make_##name(scalar x) { return {x}; }
#define SIMT_VECTOR_2(scalar, name, alignment) \
  struct alignas(alignment) name {             \
    scalar x, y;                               \
  };                                           \
  inline constexpr name make_##name(scalar x, scalar y) { return {x, y}; }
#define SIMT_VECTOR_3(scalar, name) \
  struct name {                     \
    scalar x, y, z;                 \
  };                                \
  inline constexpr name make_##name(scalar x, scalar y, scalar z) { return {x, y, z}; }
#define SIMT_VECTOR_4(scalar, name, alignment) \
  struct alignas(alignment) name {             \
    scalar x, y, z, w;                         \
  };                                           \
  inline constexpr name make_##name(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

#ifdef SIMT_TRACED  // of 8 bytes and more: copied as a whole
#define SIMT_VECTOR_WHOLE_2(scalar, name, alignment)       \
  struct alignas(alignment) name {                         \
    scalar x, y;                                           \
    constexpr explicit name(scalar x_) : x(x_), y() {}     \
    constexpr name(scalar x_, scalar y_) : x(x_), y(y_) {} \
    SIMT_COPIED_WHOLE(name)                                \
  };                                                       \
  inline constexpr name make_##name(scalar x, scalar y) { return {x, y}; }
#define SIMT_VECTOR_WHOLE_4(scalar, name, alignment)                                                     \
  struct alignas(alignment) name {                                                                       \
    scalar x, y, z, w;                                                                                   \
    constexpr explicit name(scalar x_) : x(x_), y(), z(), w() {}                                         \
    constexpr name(scalar x_, scalar y_, scalar z_ = {}, scalar w_ = {}) : x(x_), y(y_), z(z_), w(w_) {} \
    SIMT_COPIED_WHOLE(name)                                                                              \
  };                                                                                                     \
  inline constexpr name make_##name(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }
#else
#define SIMT_VECTOR_WHOLE_2 SIMT_VECTOR_2
#define SIMT_VECTOR_WHOLE_4 SIMT_VECTOR_4
#endif

// Vectors of two and four are aligned to their size, up to 16 bytes; of one and three, to their element.
#define SIMT_VECTORS(scalar, name, form_2, form_4) \
  SIMT_VECTOR_1(scalar, name##1, alignof(scalar))  \
  form_2(scalar, name##2, 2 * sizeof(scalar)) SIMT_VECTOR_3(scalar, name##3) form_4(scalar, name##4, 4 * sizeof(scalar))
#define SIMT_VECTORS_WIDE(scalar, name)                    \
  SIMT_VECTOR_1(scalar, name##1, alignof(scalar))          \
  SIMT_VECTOR_WHOLE_2(scalar, name##2, 2 * sizeof(scalar)) \
  SIMT_VECTOR_3(scalar, name##3)                           \
  SIMT_VECTOR_WHOLE_4(scalar, name##4, 16)                 \
  SIMT_VECTOR_WHOLE_4(scalar, name##4_16a, 16)             \
  SIMT_VECTOR_WHOLE_4(scalar, name##4_32a, 32)

SIMT_VECTORS(signed char, char, SIMT_VECTOR_2, SIMT_VECTOR_4)
SIMT_VECTORS(unsigned char, uchar, SIMT_VECTOR_2, SIMT_VECTOR_4)
SIMT_VECTORS(short, short, SIMT_VECTOR_2, SIMT_VECTOR_WHOLE_4)
SIMT_VECTORS(unsigned short, ushort, SIMT_VECTOR_2, SIMT_VECTOR_WHOLE_4)
SIMT_VECTORS(int, int, SIMT_VECTOR_WHOLE_2, SIMT_VECTOR_WHOLE_4)
SIMT_VECTOR_1(unsigned, uint1, alignof(unsigned))
SIMT_VECTOR_WHOLE_2(unsigned, uint2, 8)
SIMT_VECTOR_WHOLE_4(unsigned, uint4, 16)
SIMT_VECTORS(float, float, SIMT_VECTOR_WHOLE_2, SIMT_VECTOR_WHOLE_4)
SIMT_VECTORS_WIDE(long, long)
SIMT_VECTORS_WIDE(unsigned long, ulong)
SIMT_VECTORS_WIDE(long long, longlong)
SIMT_VECTORS_WIDE(unsigned long long, ulonglong)
SIMT_VECTORS_WIDE(double, double)

inline constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

#undef SIMT_VECTOR_1
#undef SIMT_VECTOR_2
#undef SIMT_VECTOR_3
#undef SIMT_VECTOR_4
#undef SIMT_VECTOR_WHOLE_2
#undef SIMT_VECTOR_WHOLE_4
#undef SIMT_VECTORS
#undef SIMT_VECTORS_WIDE
