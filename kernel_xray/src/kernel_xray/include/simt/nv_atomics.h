// nv_atomics.h: nvcc's built-in atomic functions of CUDA 12.8, __nv_atomic_load and so on. Each operation is sequentially
// consistent here, whatever its order, as in cuda_atomic.h; a value has at most 8 bytes.
#pragma once

#include <type_traits>

#include "atomics.h"
#include "intrinsics.h"

#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4

namespace simt::detail {

template <typename T>
using Unchanged = std::enable_if_t<true, T>;  // the pointer alone says what T is

template <typename Operation>
inline auto nv_atomic(int order, int scope, Operation operation) {
  const auto ordered = [&] {
    if (order >= __NV_ATOMIC_RELEASE) traced_release();
    return operation();
  };
  if (scope <= __NV_THREAD_SCOPE_BLOCK) {
    [[maybe_unused]] const InScope<Scope::block> in_scope;
    return ordered();
  }
  [[maybe_unused]] const InScope<Scope::device> in_scope;
  return ordered();
}

}  // namespace simt::detail

template <typename T>
inline T __nv_atomic_load_n(T* address, int, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  ::simt::atomic_step(::simt::every_64th());
  return ::simt::detail::nv_atomic(__NV_ATOMIC_RELAXED, scope, [&] {
    ::simt::detail::Whole<T> found;
    __atomic_load(::simt::detail::whole(address), &found, __ATOMIC_SEQ_CST);
    return found.value;
  });
}
template <typename T>
inline void __nv_atomic_load(T* address, T* to, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  *to = __nv_atomic_load_n(address, order, scope);
}

template <typename T>
inline void __nv_atomic_store_n(T* address, ::simt::detail::Unchanged<T> value, int order,
                                int scope = __NV_THREAD_SCOPE_SYSTEM) {
  ::simt::detail::Whole<T> given{value};
  ::simt::detail::nv_atomic(order, scope,
                            [&] { __atomic_store(::simt::detail::whole(address), &given, __ATOMIC_SEQ_CST); });
}
template <typename T>
inline void __nv_atomic_store(T* address, T* value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  __nv_atomic_store_n(address, *value, order, scope);
}

template <typename T>
inline T __nv_atomic_exchange_n(T* address, ::simt::detail::Unchanged<T> value, int order,
                                int scope = __NV_THREAD_SCOPE_SYSTEM) {
  const ::simt::detail::Whole<T> given{value};
  T before = ::simt::detail::nv_atomic(
      order, scope, [&] { return ::simt::detail::atomic_exchange(::simt::detail::whole(address), given).value; });
  ::simt::atomic_step(__builtin_memcmp(&before, &value, sizeof(T)) == 0);  // a lock that is taken
  return before;
}
template <typename T>
inline void __nv_atomic_exchange(T* address, T* value, T* to, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  *to = __nv_atomic_exchange_n(address, *value, order, scope);
}

// order: of success; of failure nothing shows. Returns whether *address was *expected, and what it was in *expected.
template <typename T>
inline bool __nv_atomic_compare_exchange_n(T* address, T* expected, ::simt::detail::Unchanged<T> value, bool, int order,
                                           int, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  ::simt::detail::Whole<T> found{*expected}, given{value};
  const bool done = ::simt::detail::nv_atomic(order, scope, [&] {
    return __atomic_compare_exchange(::simt::detail::whole(address), &found, &given, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
  });
  if (!done) *expected = found.value;
  ::simt::atomic_step(!done);
  return done;
}
template <typename T>
inline bool __nv_atomic_compare_exchange(T* address, T* expected, T* value, bool weak, int order, int failure,
                                         int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return __nv_atomic_compare_exchange_n(address, expected, *value, weak, order, failure, scope);
}

// Defines __nv_atomic_fetch_<name> and __nv_atomic_<name>, for the types of nvcc.
#define SIMT_NV_ATOMIC(name, types, after)                                                                           \
  template <typename T>                                                                                              \
  inline T __nv_atomic_fetch_##name(T* address, ::simt::detail::Unchanged<T> value, int order,                       \
                                    int scope = __NV_THREAD_SCOPE_SYSTEM) {                                          \
    static_assert((sizeof(T) == 4 || sizeof(T) == 8) && (types), "nvcc has no __nv_atomic_" #name " of this type");  \
    return ::simt::detail::nv_atomic(                                                                                \
        order, scope, [&] { return ::simt::detail::atomic_update(address, [&](T before) -> T { return after; }); }); \
  }                                                                                                                  \
  template <typename T>                                                                                              \
  inline void __nv_atomic_##name(T* address, ::simt::detail::Unchanged<T> value, int order,                          \
                                 int scope = __NV_THREAD_SCOPE_SYSTEM) {                                             \
    __nv_atomic_fetch_##name(address, value, order, scope);                                                          \
  }
SIMT_NV_ATOMIC(add, sizeof(T) == 4 || !std::is_signed_v<T> || std::is_floating_point_v<T>, before + value)
SIMT_NV_ATOMIC(sub, sizeof(T) == 4 || !std::is_signed_v<T> || std::is_floating_point_v<T>, before - value)
SIMT_NV_ATOMIC(min, std::is_integral_v<T>, value < before ? value : before)
SIMT_NV_ATOMIC(max, std::is_integral_v<T>, before < value ? value : before)
SIMT_NV_ATOMIC(and, std::is_integral_v<T>, before& value)
SIMT_NV_ATOMIC(or, std::is_integral_v<T>, before | value)
SIMT_NV_ATOMIC(xor, std::is_integral_v<T>, before ^ value)
#undef SIMT_NV_ATOMIC

SIMT_HERE void __nv_atomic_thread_fence(int, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  if (scope <= __NV_THREAD_SCOPE_BLOCK)
    __threadfence_block();
  else
    __threadfence();
}
