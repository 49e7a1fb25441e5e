// vector_types.h: CUDA's built-in vector types (char1 .. double4) with CUDA's alignments, and make_* for each.
//
// They are aggregates as in CUDA: `float4{1, 2, 3, 4}` works and `a + b` does not. The alignment is what makes the
// copy of a float4 one 16-byte access. uint3 and dim3 live in core.h.
#pragma once

#include "core.h"

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

// Vectors of two and four are aligned to their size, up to 16 bytes; of one and three, to their element.
#define SIMT_VECTOR_SMALL(scalar, name)              \
  SIMT_VECTOR_1(scalar, name##1, alignof(scalar))    \
  SIMT_VECTOR_2(scalar, name##2, 2 * sizeof(scalar)) \
  SIMT_VECTOR_3(scalar, name##3)                     \
  SIMT_VECTOR_4(scalar, name##4, 4 * sizeof(scalar))
#define SIMT_VECTOR_WIDE(scalar, name)               \
  SIMT_VECTOR_1(scalar, name##1, alignof(scalar))    \
  SIMT_VECTOR_2(scalar, name##2, 2 * sizeof(scalar)) \
  SIMT_VECTOR_3(scalar, name##3)                     \
  SIMT_VECTOR_4(scalar, name##4, 16)                 \
  SIMT_VECTOR_4(scalar, name##4_16a, 16)             \
  SIMT_VECTOR_4(scalar, name##4_32a, 32)

SIMT_VECTOR_SMALL(signed char, char)
SIMT_VECTOR_SMALL(unsigned char, uchar)
SIMT_VECTOR_SMALL(short, short)
SIMT_VECTOR_SMALL(unsigned short, ushort)
SIMT_VECTOR_SMALL(int, int)
SIMT_VECTOR_1(unsigned, uint1, alignof(unsigned))
SIMT_VECTOR_2(unsigned, uint2, 8)
SIMT_VECTOR_4(unsigned, uint4, 16)
SIMT_VECTOR_SMALL(float, float)
SIMT_VECTOR_WIDE(long, long)
SIMT_VECTOR_WIDE(unsigned long, ulong)
SIMT_VECTOR_WIDE(long long, longlong)
SIMT_VECTOR_WIDE(unsigned long long, ulonglong)
SIMT_VECTOR_WIDE(double, double)

inline constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

#undef SIMT_VECTOR_1
#undef SIMT_VECTOR_2
#undef SIMT_VECTOR_3
#undef SIMT_VECTOR_4
#undef SIMT_VECTOR_SMALL
#undef SIMT_VECTOR_WIDE
