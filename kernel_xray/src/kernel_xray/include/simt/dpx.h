// dpx.h: the functions of DPX: the least and the greatest of sums and of three values, for dynamic programming. A name
// ends in the type, or in that of the two halves of a word; `relu`: no less than 0. Sums wrap around.
#pragma once

#include "core.h"

namespace simt::dpx {

template <typename T>
SIMT_NOT_TRACED inline T greatest(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
SIMT_NOT_TRACED inline T least(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
SIMT_NOT_TRACED inline T sum(T a, T b) {
  return static_cast<T>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
// A word of the results of `of`, which takes the words' lower halves, then their upper ones.
template <typename Half, typename Function, typename... Words>
SIMT_NOT_TRACED inline unsigned halves(Function of, Words... words) {
  const auto lower = static_cast<uint16_t>(of(static_cast<Half>(words)...));
  const auto upper = static_cast<uint16_t>(of(static_cast<Half>(words >> 16)...));
  return lower | static_cast<unsigned>(upper) << 16;
}

}  // namespace simt::dpx

#define SIMT_DPX_WORD(name, T, value)            \
  SIMT_NOT_TRACED inline T name(T a, T b, T c) { \
    using namespace simt::dpx;                   \
    return value;                                \
  }
#define SIMT_DPX_HALVES(name, T, value)                                             \
  SIMT_NOT_TRACED inline unsigned name(unsigned x, unsigned y, unsigned z) {        \
    using namespace simt::dpx;                                                      \
    return halves<T>([](T a, T b, T c) SIMT_NOT_TRACED { return value; }, x, y, z); \
  }
#define SIMT_DPX(name, value)                                     \
  SIMT_DPX_WORD(__##name##_s32, int, value)                       \
  SIMT_DPX_WORD(__##name##_u32, unsigned, value)                  \
  SIMT_DPX_HALVES(__##name##_s16x2, int16_t, value)               \
  SIMT_DPX_HALVES(__##name##_u16x2, uint16_t, value)              \
  SIMT_DPX_WORD(__##name##_s32_relu, int, greatest(int{}, value)) \
  SIMT_DPX_HALVES(__##name##_s16x2_relu, int16_t, greatest(int16_t{}, value))

SIMT_DPX(vimax3, greatest(greatest(a, b), c))
SIMT_DPX(vimin3, least(least(a, b), c))
SIMT_DPX(viaddmax, greatest(sum(a, b), c))
SIMT_DPX(viaddmin, least(sum(a, b), c))
#undef SIMT_DPX
#undef SIMT_DPX_HALVES
#undef SIMT_DPX_WORD

// Of two values; of vib, also whether the first is the result.
#define SIMT_DPX(name, pick, precedes)                                                                       \
  SIMT_NOT_TRACED inline int __vi##name##_s32_relu(int a, int b) { return __vi##name##3_s32_relu(a, b, b); } \
  SIMT_NOT_TRACED inline unsigned __vi##name##_s16x2_relu(unsigned a, unsigned b) {                          \
    return __vi##name##3_s16x2_relu(a, b, b);                                                                \
  }                                                                                                          \
  SIMT_NOT_TRACED inline int __vib##name##_s32(int a, int b, bool* first) {                                  \
    *first = a precedes b;                                                                                   \
    return simt::dpx::pick(a, b);                                                                            \
  }                                                                                                          \
  SIMT_NOT_TRACED inline unsigned __vib##name##_u32(unsigned a, unsigned b, bool* first) {                   \
    *first = a precedes b;                                                                                   \
    return simt::dpx::pick(a, b);                                                                            \
  }                                                                                                          \
  SIMT_NOT_TRACED inline unsigned __vib##name##_s16x2(unsigned a, unsigned b, bool* upper, bool* lower) {    \
    *upper = static_cast<int16_t>(a >> 16) precedes static_cast<int16_t>(b >> 16);                           \
    *lower = static_cast<int16_t>(a) precedes static_cast<int16_t>(b);                                       \
    return __vi##name##3_s16x2(a, b, b);                                                                     \
  }                                                                                                          \
  SIMT_NOT_TRACED inline unsigned __vib##name##_u16x2(unsigned a, unsigned b, bool* upper, bool* lower) {    \
    *upper = static_cast<uint16_t>(a >> 16) precedes static_cast<uint16_t>(b >> 16);                         \
    *lower = static_cast<uint16_t>(a) precedes static_cast<uint16_t>(b);                                     \
    return __vi##name##3_u16x2(a, b, b);                                                                     \
  }
SIMT_DPX(max, greatest, >=)
SIMT_DPX(min, least, <=)
#undef SIMT_DPX
