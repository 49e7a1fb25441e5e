// reductions.h: what a bulk reduction does to each element in global memory (cp.reduce.async.bulk), as one atomic update.
#pragma once

#include "core.h"
#include "narrow_formats.h"

namespace simt {

enum class Reduction { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

template <typename T>
SIMT_NOT_TRACED T reduced(Reduction how, T old, T value) {
  if (how == Reduction::add) return static_cast<T>(old + value);
  if (how == Reduction::min) return value < old ? value : old;
  if (how == Reduction::max) return value > old ? value : old;
  if constexpr (std::is_integral_v<T>) {
    if (how == Reduction::inc) return old >= value ? T{0} : static_cast<T>(old + 1);
    if (how == Reduction::dec) return old == 0 || old > value ? value : static_cast<T>(old - 1);
    if (how == Reduction::bit_and) return old & value;
    if (how == Reduction::bit_or) return old | value;
    if (how == Reduction::bit_xor) return old ^ value;
  }
  return old;
}

// *to = combine(*to, *from). Blocks on other host threads may do the same.
template <typename Bits, typename Combine>
SIMT_NOT_TRACED void update(char* to, const char* from, Combine combine) {
  Bits value, *const at = reinterpret_cast<Bits*>(to);
  __builtin_memcpy(&value, from, sizeof value);
  Bits old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(at, &old, combine(old, value), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}
template <typename T>
SIMT_NOT_TRACED void reduce(Reduction how, char* to, const char* from) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  update<Bits>(to, from, [=](Bits old, Bits value) {
    return bit_cast<Bits>(reduced(how, bit_cast<T>(old), bit_cast<T>(value)));
  });
}
template <typename Format>
SIMT_NOT_TRACED void reduce_narrow(Reduction how, char* to, const char* from) {
  update<uint16_t>(to, from, [=](uint16_t old, uint16_t value) {
    return Format::encode(reduced(how, Format::decode(old), Format::decode(value)));
  });
}

}  // namespace simt
