// tensor_core_sum.h: how a tensor core adds products of narrow elements, for any format with a NarrowFormat.
//
// d = a[0] * b[0] + ... + a[15] * b[15] + c, as NVIDIA's Hopper does it for float16 and bfloat16:
//   1. Products are exact. The exponent of a product is the sum of its factors' exponents, even if the product of
//      their significands is 2 or more.
//   2. All 17 terms are aligned to the largest of their exponents and truncated after 25 fractional bits.
//   3. They are added exactly, and the sum is rounded toward zero to float32, or to nearest, even, to float16.
// So no partial sum is rounded, the order of the terms does not matter, and small terms beside a large one are lost.
// Ampere and Ada keep 24 bits and add 8 products at a time: their last bits differ. The model is taken from MMA-Sim
// (github.com/microsoft/MMA-Sim, MIT), which was compared with the hardware; the code is not.
//
// This header needs no 16-bit types, so that inline PTX can use it before a program has chosen their operators.
#pragma once

#include <type_traits>

#include "warp.h"

namespace simt {

// significand * 2^(exponent - fraction bits of the type); `special` for infinities and NaN.
struct Decoded {
  int32_t significand;
  int32_t exponent;
  bool special;
};

// The format of T: kFraction and kBias, bits(value) in the lowest kBits bits, and widened(value) as a float.
template <typename T>
struct NarrowFormat;

// The value of a sign, an exponent and `fraction` fraction bits.
SIMT_NOT_TRACED inline Decoded decode_bits(uint32_t bits, int fraction, int bias, int all_bits) {
  const uint32_t highest = (uint32_t(1) << (all_bits - 1 - fraction)) - 1, field = bits >> fraction & highest;
  const uint32_t rest = bits & ((uint32_t(1) << fraction) - 1);
  const int32_t significand = static_cast<int32_t>(field ? rest | uint32_t(1) << fraction : rest);
  const int32_t exponent = static_cast<int32_t>(field ? field : 1) - bias;  // subnormals: the smallest exponent
  return {bits >> (all_bits - 1) ? -significand : significand, exponent, field == highest};
}

template <typename T>
SIMT_NOT_TRACED inline Decoded decode(T value) {
  using Format = NarrowFormat<T>;
  return decode_bits(Format::bits(value), Format::kFraction, Format::kBias, Format::kBits);
}

// Tells the X-ray of a lane's share of a product that `lanes` lanes compute together.
template <typename T, int multiply_adds, int lanes = kWarpSize>
__attribute__((always_inline)) inline void tell_product() {
#ifdef SIMT_TRACED
  constexpr auto type = [] {
    if constexpr (sizeof(T) == 1)
      return std::is_integral_v<T> ? TensorType::int8 : TensorType::float8;
    else if constexpr (sizeof(T) == 4)
      return TensorType::tf32;
    else
      return NarrowFormat<T>::kFraction == 10 ? TensorType::float16 : TensorType::bfloat16;
  }();
  tensor_work(type, multiply_adds / lanes);
#endif
}

constexpr int kTensorCoreFraction = 25;

// sum * 2^exponent, exactly, or the special value.
struct TensorCoreSum {
  int64_t sum;
  int exponent;
  bool is_special;
  float special;
};

constexpr int kMostTerms = 32;

template <typename T>
SIMT_NOT_TRACED inline void decode_all(const T* values, int count, Decoded* to) {
  for (int i = 0; i < count; ++i) to[i] = decode(values[i]);
}

SIMT_NOT_TRACED inline int64_t truncated(int64_t significand, int left, int right) {
  const int64_t size = (significand < 0 ? -significand : significand) << left >> (right < 63 ? right : 63);
  return significand < 0 ? -size : size;
}

// `x` and `y` are a and b, decoded.
template <typename T>
SIMT_NOT_TRACED inline TensorCoreSum tensor_core_sum(const T* a, const T* b, const Decoded* x, const Decoded* y,
                                                     int count, float c) {
  constexpr int room = kTensorCoreFraction - 2 * NarrowFormat<T>::kFraction;  // to the left of a product's significand
  static_assert(room >= 0 && 2 * (NarrowFormat<T>::kFraction + 1) + room < 32, "a product needs more than 32 bits");
  int32_t significands[kMostTerms], exponents[kMostTerms], largest = INT32_MIN;
  uint32_t bits;
  __builtin_memcpy(&bits, &c, 4);
  const Decoded start = decode_bits(bits, 23, 127, 32);
  bool special = start.special;
  for (int i = 0; i < count; ++i) {
    special |= x[i].special | y[i].special;
    significands[i] = x[i].significand * y[i].significand;
    exponents[i] = x[i].exponent + y[i].exponent;
    if (significands[i] && exponents[i] > largest) largest = exponents[i];
  }
  if (special) {
    float sum = c;
    for (int i = 0; i < count; ++i) sum += NarrowFormat<T>::widened(a[i]) * NarrowFormat<T>::widened(b[i]);
    return {0, 0, true, sum};
  }
  if (start.significand && start.exponent > largest) largest = start.exponent;
  if (largest == INT32_MIN) return {0, 0, false, 0.0f};  // all terms are 0

  int64_t sum =
      start.significand ? truncated(start.significand, kTensorCoreFraction - 23, largest - start.exponent) : 0;
  for (int i = 0; i < count; ++i)
    if (significands[i]) sum += truncated(significands[i], room, largest - exponents[i]);
  return {sum, sum ? largest - kTensorCoreFraction : 0, false, 0.0f};
}

template <typename T>
SIMT_NOT_TRACED inline TensorCoreSum tensor_core_sum(const T* a, const T* b, int count, float c) {
  Decoded x[kMostTerms], y[kMostTerms];
  decode_all(a, count, x);
  decode_all(b, count, y);
  return tensor_core_sum(a, b, x, y, count, c);
}

SIMT_NOT_TRACED inline void round_sum(const TensorCoreSum& from, float& to) {
  if (from.is_special) {
    to = from.special != from.special ? __builtin_nanf("0x3fffff") : from.special;
    return;
  }
  uint64_t size = from.sum < 0 ? -static_cast<uint64_t>(from.sum) : static_cast<uint64_t>(from.sum);
  int exponent = from.exponent;
  for (; size >> 24 || (size && exponent < -149); ++exponent) size >>= 1;  // toward zero
  to = __builtin_ldexpf(static_cast<float>(size), exponent);
  if (from.sum < 0) to = -to;
}

// While a Lanes exists, each lane of the warp can read the object that any other lane passed in. All lanes have to
// construct it together and destroy it together.
template <typename T>
class Lanes {
 public:
  explicit Lanes(const T& own) {
    const uint64_t first = warp_collective(Collective::shuffle, 0xffffffffu, reinterpret_cast<uint64_t>(table_), 0);
    of_ = reinterpret_cast<const T**>(first);
    give(of_ + lane(), &own);
    __syncwarp();
  }
  ~Lanes() { __syncwarp(); }  // no lane changes an object that another lane still reads
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  SIMT_NOT_TRACED const T& operator[](unsigned lane) const { return *of_[lane]; }

 private:
  SIMT_NOT_TRACED __attribute__((noinline)) static void give(const T** place, const T* own) { *place = own; }

  const T* table_[kWarpSize];  // only lane 0's is used
  const T** of_;
};

}  // namespace simt
