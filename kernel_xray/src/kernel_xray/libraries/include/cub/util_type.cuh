// util_type.cuh: the types that CUB's interfaces share.
#pragma once

#include <limits>

#include "simt/intrinsics.h"
#include "simt/warp.h"

#define CUB_LOG_WARP_THREADS(unused) 5
#define CUB_WARP_THREADS(unused) 32
#define CUB_PTX_LOG_WARP_THREADS 5
#define CUB_PTX_WARP_THREADS 32

namespace cub {

struct NullType {};

template <int value_>
struct Int2Type {
  enum { VALUE = value_ };
};

template <typename Key_, typename Value_>
struct KeyValuePair {
  using Key = Key_;
  using Value = Value_;
  Key key;
  Value value;
  bool operator!=(const KeyValuePair& other) const { return key != other.key || value != other.value; }
};

// Room for an object without its constructor, as shared memory needs it; unlike detail::Uninitialized, a base class.
template <typename T>
struct Uninitialized {
  alignas(T) char storage[sizeof(T)];
  T& Alias() { return reinterpret_cast<T&>(storage); }
};

template <int number>
struct Log2 {  // rounded up
  enum { VALUE = number <= 1 ? 0 : Log2<(number + 1) / 2>::VALUE + 1 };
};
template <>
struct Log2<1> {
  enum { VALUE = 0 };
};

// Two buffers of which one is current: what a sort may use in turn.
template <typename T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

namespace detail {

// Room for `count` objects, without a constructor: what shared memory and unions can hold.
template <typename T, int count>
struct Uninitialized {
  alignas(T) char bytes[sizeof(T) * (count > 0 ? count : 1)];
  T& operator[](int i) { return reinterpret_cast<T*>(bytes)[i]; }
};

// The storage of a collective that was constructed without one: static shared memory.
template <typename Storage>
Storage& private_storage() {
  static ::simt::SharedSite site;
  return *static_cast<Storage*>(::simt::shared_static(&site, sizeof(Storage), alignof(Storage)));
}

inline constexpr int kAll = std::numeric_limits<int>::max();  // of a tile's values

inline int thread_in_block() { return static_cast<int>(::simt::self().linear); }

}  // namespace detail

inline unsigned LaneId() { return ::simt::lane(); }
inline unsigned WarpId() { return ::simt::self().linear / ::simt::kWarpSize; }
inline int RowMajorTid(int, int, int) { return detail::thread_in_block(); }

template <int logical_warp>  // the lanes of a logical warp of the physical one
unsigned WarpMask(unsigned warp) {
  constexpr bool kDivides = logical_warp < 32 && (logical_warp & (logical_warp - 1)) == 0;
  return (0xffffffffu >> (32 - logical_warp)) << (kDivides ? warp * logical_warp : 0);
}

template <int logical_warp, typename T>
T ShuffleUp(T value, int offset, int first_lane, unsigned mask) {
  const int lane = static_cast<int>(::simt::lane());
  const int first = static_cast<int>(lane / logical_warp * logical_warp) + first_lane;
  return ::simt::detail::exchange(mask, value, static_cast<unsigned>(lane - offset >= first ? lane - offset : lane));
}
template <int logical_warp, typename T>
T ShuffleDown(T value, int offset, int last_lane, unsigned mask) {
  const int lane = static_cast<int>(::simt::lane());
  const int last = static_cast<int>(lane / logical_warp * logical_warp) + last_lane;
  return ::simt::detail::exchange(mask, value, static_cast<unsigned>(lane + offset <= last ? lane + offset : lane));
}
template <int logical_warp, typename T>
T ShuffleIndex(T value, int source, unsigned mask) {
  const unsigned first = ::simt::lane() / logical_warp * logical_warp;
  return ::simt::detail::exchange(mask, value, first + static_cast<unsigned>(source) % logical_warp);
}

}  // namespace cub
