// radix_key.cuh: keys as the bits by which a radix sort orders them.
#pragma once

#include "../util_type.cuh"

struct __half;
struct __nv_bfloat16;

namespace cub::detail {

template <size_t bytes>
using Bits =
    std::conditional_t<bytes == 1, uint8_t,
                       std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

// Unsigned integers in the order of the keys. Negative and positive zero are the same key, as in CUB.
template <typename T>
uint64_t ordered_bits(const T& key) {
  static_assert(sizeof(T) <= 8, "a radix sort's keys are numbers of at most 8 bytes");
  using U = Bits<sizeof(T)>;
  constexpr U kSign = U(1) << (8 * sizeof(T) - 1);
  constexpr bool kFloating =
      std::is_floating_point_v<T> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
  U bits;
  __builtin_memcpy(&bits, &key, sizeof(T));
  if constexpr (kFloating) {
    if (bits == kSign) bits = 0;
    return static_cast<U>(bits & kSign ? ~bits : bits | kSign);
  } else {
    return std::is_signed_v<T> ? static_cast<U>(bits ^ kSign) : bits;
  }
}

// Bits [begin, end) of a key, inverted for a descending order.
template <typename T>
uint64_t digits(const T& key, int begin, int end, bool descending) {
  const uint64_t mask = end - begin >= 64 ? ~uint64_t{0} : (uint64_t{1} << (end - begin)) - 1;
  const uint64_t bits = ordered_bits(key);
  return ((descending ? ~bits : bits) >> begin) & mask;
}

}  // namespace cub::detail
