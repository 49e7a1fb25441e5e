// whole.h: makes a copy of a vector type one access to memory, as on a GPU.
//
// A host compiler copies a float4 in one piece or member by member, or builds it in place. The traced mode counts
// accesses, so there a copy goes through a volatile vector of the type's size. This takes constructors: in the traced
// mode the types are neither aggregates, as in CUDA, nor trivially copyable.
#pragma once

#include "core.h"

namespace simt {

template <typename T, typename = void>
inline constexpr bool is_copied_whole = false;
template <typename T>
inline constexpr bool is_copied_whole<T, typename T::simt_copied_whole> = true;

// Types whose bits may be copied.
template <typename T>
inline constexpr bool is_plain = std::is_trivially_copyable_v<T> || is_copied_whole<T>;

#ifdef SIMT_TRACED
namespace detail {
template <size_t alignment>  // 16 and more: pieces of 16 bytes, the widest access
struct Piece {
  typedef long long type __attribute__((vector_size(16), may_alias));
};
template <>
struct Piece<8> {
  typedef long long type __attribute__((may_alias));
};

template <typename T>
__attribute__((always_inline)) inline void copy_whole(T* to, const T* from) {
  using P = typename Piece<alignof(T)>::type;
  for (size_t i = 0; i < sizeof(T) / sizeof(P); ++i)
    reinterpret_cast<volatile P*>(to)[i] = reinterpret_cast<const volatile P*>(from)[i];
}
}  // namespace detail

#define SIMT_COPIED_WHOLE(name)                                                                        \
  using simt_copied_whole = void;                                                                      \
  name() = default;                                                                                    \
  __attribute__((always_inline)) name(const name& other) { ::simt::detail::copy_whole(this, &other); } \
  __attribute__((always_inline)) name& operator=(const name& other) {                                  \
    ::simt::detail::copy_whole(this, &other);                                                          \
    return *this;                                                                                      \
  }
#endif

}  // namespace simt
