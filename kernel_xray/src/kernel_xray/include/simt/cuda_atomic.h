// cuda_atomic.h: cuda::atomic and cuda::atomic_ref, for kernels and host (<cuda/atomic>, <cuda/std/atomic>).
//
// Every operation is sequentially consistent here, whatever its order and scope; a weaker order never shows. In a traced
// kernel an operation that releases says so by a fence before it, which is what the tracer knows as a release, and both
// have the scope of the object; thread_scope_thread counts as thread_scope_block. A thread that waits for another one of
// its block in a loop of loads or failed exchanges lets it run from time to time.
//
// Deviations from CUDA: values have at most 8 bytes, and wait() polls.
#pragma once

#include "atomics.h"
#include "core.h"
#include "cuda_scopes.h"
#include "intrinsics.h"

namespace simt {

inline void atomic_release(::cuda::std::memory_order order) {
  if (order == ::cuda::std::memory_order_release || order == ::cuda::std::memory_order_acq_rel ||
      order == ::cuda::std::memory_order_seq_cst)
    traced_release();
}

constexpr Scope scope_of(::cuda::thread_scope scope) {
  return scope == ::cuda::thread_scope_block || scope == ::cuda::thread_scope_thread ? Scope::block : Scope::device;
}

// The operations of atomic and atomic_ref; Derived has `T* address() const`.
template <typename Derived, typename T, ::cuda::thread_scope scope, typename Difference>
class AtomicOperations {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "an atomic value has at most 8 bytes");
  using Order = ::cuda::std::memory_order;
  static constexpr Order kStrong = ::cuda::std::memory_order_seq_cst;
  using Scoped = InScope<scope_of(scope)>;
  using Whole = detail::Whole<T>;

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;
  bool is_lock_free() const { return true; }

  void store(T value, Order order = kStrong) const {
    [[maybe_unused]] const Scoped in_scope;
    atomic_release(order);
    Whole given{value};
    __atomic_store(at(), &given, __ATOMIC_SEQ_CST);
  }
  T load(Order = kStrong) const {
    atomic_step(every_64th());
    [[maybe_unused]] const Scoped in_scope;
    Whole found;
    __atomic_load(at(), &found, __ATOMIC_SEQ_CST);
    return found.value;
  }
  void store(T value, Order order = kStrong) const volatile { not_volatile().store(value, order); }
  T load(Order order = kStrong) const volatile { return not_volatile().load(order); }
  T exchange(T value, Order order = kStrong) const {
    [[maybe_unused]] const Scoped in_scope;
    atomic_release(order);
    Whole before, given{value};
    __atomic_exchange(at(), &given, &before, __ATOMIC_SEQ_CST);
    atomic_step(__builtin_memcmp(&before, &given, sizeof(T)) == 0);  // a lock that is taken
    return before.value;
  }
  bool compare_exchange_strong(T& expected, T value, Order order, Order) const {
    [[maybe_unused]] const Scoped in_scope;
    atomic_release(order);
    Whole found{expected}, given{value};
    const bool done = __atomic_compare_exchange(at(), &found, &given, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (!done) expected = found.value;
    atomic_step(!done);
    return done;
  }
  bool compare_exchange_strong(T& expected, T value, Order order = kStrong) const {
    return compare_exchange_strong(expected, value, order, order);
  }
  bool compare_exchange_weak(T& expected, T value, Order order, Order failure) const {
    return compare_exchange_strong(expected, value, order, failure);
  }
  bool compare_exchange_weak(T& expected, T value, Order order = kStrong) const {
    return compare_exchange_strong(expected, value, order, order);
  }
  operator T() const { return load(); }

  void wait(T old, Order order = kStrong) const {
    for (T now = load(order); __builtin_memcmp(&now, &old, sizeof(T)) == 0; now = load(order)) atomic_step(true);
  }
  void notify_one() const {}
  void notify_all() const {}

  // Of numbers, and of pointers by elements
#define SIMT_FETCH(name, Value, after)                                     \
  T fetch_##name(Value value, Order order = kStrong) const {               \
    return update(order, [=](T before) { return static_cast<T>(after); }); \
  }
  SIMT_FETCH(add, Difference, before + value)
  SIMT_FETCH(sub, Difference, before - value)
  SIMT_FETCH(min, T, value < before ? value : before)
  SIMT_FETCH(max, T, before < value ? value : before)
  SIMT_FETCH(and, T, (before & value))
  SIMT_FETCH(or, T, before | value)
  SIMT_FETCH(xor, T, before ^ value)
#undef SIMT_FETCH
  T operator++() const { return static_cast<T>(fetch_add(1) + 1); }
  T operator--() const { return static_cast<T>(fetch_sub(1) - 1); }
  T operator++(int) const { return fetch_add(1); }
  T operator--(int) const { return fetch_sub(1); }
  T operator+=(Difference value) const { return static_cast<T>(fetch_add(value) + value); }
  T operator-=(Difference value) const { return static_cast<T>(fetch_sub(value) - value); }
  T operator&=(T value) const { return static_cast<T>(fetch_and(value) & value); }
  T operator|=(T value) const { return static_cast<T>(fetch_or(value) | value); }
  T operator^=(T value) const { return static_cast<T>(fetch_xor(value) ^ value); }

 private:
  Whole* at() const { return detail::whole(static_cast<const Derived*>(this)->address()); }
  const AtomicOperations& not_volatile() const volatile { return const_cast<const AtomicOperations&>(*this); }

  // One atomic access in a trace, as the hardware's operation is.
  template <typename Operation>
  T update(Order order, Operation operation) const {
    [[maybe_unused]] const Scoped in_scope;
    atomic_release(order);
    Whole before, after;
    __atomic_load(at(), &before, __ATOMIC_RELAXED);
    do {
      after.value = operation(before.value);
    } while (!__atomic_compare_exchange(at(), &before, &after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return before.value;
  }
};

template <typename T>
using AtomicDifference = std::conditional_t<std::is_pointer_v<T>, std::ptrdiff_t, T>;

}  // namespace simt

namespace cuda {

template <typename T, thread_scope scope = thread_scope_system>
class atomic : public ::simt::AtomicOperations<atomic<T, scope>, T, scope, ::simt::AtomicDifference<T>> {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  T operator=(T value) {
    this->store(value);
    return value;
  }
  T* address() const { return const_cast<T*>(&value_); }

 private:
  alignas(sizeof(T)) T value_;
};

template <typename T, thread_scope scope = thread_scope_system>
class atomic_ref : public ::simt::AtomicOperations<atomic_ref<T, scope>, T, scope, ::simt::AtomicDifference<T>> {
 public:
  static constexpr ::std::size_t required_alignment = sizeof(T);
  explicit atomic_ref(T& value) : address_(&value) {}
  T operator=(T value) const {
    this->store(value);
    return value;
  }
  T* address() const { return address_; }

 private:
  T* address_;
};

template <thread_scope scope = thread_scope_system>
class atomic_flag {
 public:
  atomic_flag() = default;
  constexpr atomic_flag(bool set) : set_(set) {}
  bool test_and_set(memory_order order = memory_order_seq_cst) { return set_.exchange(1, order) != 0; }
  void clear(memory_order order = memory_order_seq_cst) { set_.store(0, order); }
  bool test(memory_order order = memory_order_seq_cst) const { return set_.load(order) != 0; }

 private:
  atomic<unsigned, scope> set_;
};

SIMT_HERE void atomic_thread_fence(memory_order, thread_scope scope = thread_scope_system) {
  if (::simt::scope_of(scope) == ::simt::Scope::block)
    __threadfence_block();
  else
    __threadfence();
}
inline void atomic_signal_fence(memory_order) {}

namespace std {
template <typename T>
using atomic = ::cuda::atomic<T, ::cuda::thread_scope_system>;
template <typename T>
using atomic_ref = ::cuda::atomic_ref<T, ::cuda::thread_scope_system>;
using atomic_flag = ::cuda::atomic_flag<>;
using ::cuda::atomic_signal_fence;
inline void atomic_thread_fence(memory_order order) { ::cuda::atomic_thread_fence(order); }
}  // namespace std

}  // namespace cuda
