// atomics.h: CUDA's atomic functions, with CUDA's overload set.
//
// Blocks run on several threads of the operating system, so these are real atomics. The overloads are plain functions:
// a type that CUDA does not support (`atomicAdd(long long*, ...)`) does not compile here either. CUDA's atomics are
// relaxed; these are acquire-release, because barriers between fibres of one block cost no fence here and a kernel
// that is right on a GPU ('the last block adds up') must be right on a weakly ordered CPU too.
// The `_block` and `_system` forms do the same as the plain ones; the tracer knows a `_block` form as atomic for its block
// only. cuda_fp16.h and cuda_bf16.h add theirs.
#pragma once

#include "core.h"
#include "vector_types.h"

namespace simt {

// Before an operation that releases, in a traced kernel.
inline void traced_release() {
#ifdef SIMT_TRACED
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// For a step of a loop that may wait for another thread of the block.
inline void atomic_step(bool in_vain) {
  if (in_vain) let_others_run();
}
inline bool every_64th() {
#ifndef SIMT_TRACED  // where the count itself would be an access
  static thread_local unsigned count = 0;
  return ++count % 64 == 0;
#else
  return true;
#endif
}

}  // namespace simt

namespace simt::detail {

// Atomic values lie at multiples of their size. Of a structure that need not, clang++ would call libatomic.
template <typename T>
struct alignas(sizeof(T)) Whole {
  T value;
};
template <typename T>
inline Whole<T>* whole(T* address) {
  return reinterpret_cast<Whole<T>*>(address);
}

// Replaces *address by operation(*address) and returns the old value. Compares bits, so it is right for NaN.
template <typename T, typename Operation>
inline T atomic_update(T* address, Operation operation) {
  T before, after;
  __atomic_load(address, &before, __ATOMIC_RELAXED);
  do {
    after = operation(before);
  } while (!__atomic_compare_exchange(address, &before, &after, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return before;
}

template <typename T>
inline T atomic_exchange(T* address, T value) {
  T before;
  __atomic_exchange(address, &value, &before, __ATOMIC_ACQ_REL);
  return before;
}

template <typename T>
inline T atomic_compare_and_swap(T* address, T compare, T value) {
  __atomic_compare_exchange(address, &compare, &value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return compare;  // on failure the builtin has stored the old value here
}

}  // namespace simt::detail

// Defines name(T*, T), name_block and name_system; `expression` uses address and value.
#define SIMT_ATOMIC_FORM(name, T, scope, expression)                       \
  inline T name(T* address, T value) {                                     \
    [[maybe_unused]] const ::simt::InScope<::simt::Scope::scope> in_scope; \
    return expression;                                                     \
  }
#define SIMT_ATOMIC(name, T, expression)               \
  SIMT_ATOMIC_FORM(name, T, device, expression)        \
  SIMT_ATOMIC_FORM(name##_block, T, block, expression) \
  SIMT_ATOMIC_FORM(name##_system, T, device, expression)
#define SIMT_ATOMIC_UPDATE(name, T, after) \
  SIMT_ATOMIC(name, T, ::simt::detail::atomic_update(address, [value](T before) -> T { return after; }))

#define SIMT_ATOMIC_INTEGER(T)                                                \
  SIMT_ATOMIC(atomicExch, T, ::simt::detail::atomic_exchange(address, value)) \
  SIMT_ATOMIC_CAS(T)
#define SIMT_ATOMIC_CAS(T)                        \
  SIMT_ATOMIC_FORM_CAS(atomicCAS, T, device)      \
  SIMT_ATOMIC_FORM_CAS(atomicCAS_block, T, block) \
  SIMT_ATOMIC_FORM_CAS(atomicCAS_system, T, device)
#define SIMT_ATOMIC_FORM_CAS(name, T, scope)                                 \
  inline T name(T* address, T compare, T value) {                            \
    [[maybe_unused]] const ::simt::InScope<::simt::Scope::scope> in_scope;   \
    return ::simt::detail::atomic_compare_and_swap(address, compare, value); \
  }
#define SIMT_ATOMIC_BITWISE(T)                                                    \
  SIMT_ATOMIC(atomicAnd, T, __atomic_fetch_and(address, value, __ATOMIC_ACQ_REL)) \
  SIMT_ATOMIC(atomicOr, T, __atomic_fetch_or(address, value, __ATOMIC_ACQ_REL))   \
  SIMT_ATOMIC(atomicXor, T, __atomic_fetch_xor(address, value, __ATOMIC_ACQ_REL)) \
  SIMT_ATOMIC_UPDATE(atomicMin, T, before < value ? before : value)               \
  SIMT_ATOMIC_UPDATE(atomicMax, T, before > value ? before : value)

SIMT_ATOMIC(atomicAdd, int, __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL))
SIMT_ATOMIC(atomicAdd, unsigned, __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL))
SIMT_ATOMIC(atomicAdd, unsigned long long, __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL))
SIMT_ATOMIC_UPDATE(atomicAdd, float, before + value)
SIMT_ATOMIC_UPDATE(atomicAdd, double, before + value)

// Vectors of floats in global memory, since compute capability 9.0: each float is added atomically, not the whole.
inline float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
inline float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
          atomicAdd(&address->w, value.w)};
}

SIMT_ATOMIC(atomicSub, int, __atomic_fetch_sub(address, value, __ATOMIC_ACQ_REL))
SIMT_ATOMIC(atomicSub, unsigned, __atomic_fetch_sub(address, value, __ATOMIC_ACQ_REL))

SIMT_ATOMIC_UPDATE(atomicInc, unsigned, before >= value ? 0 : before + 1)
SIMT_ATOMIC_UPDATE(atomicDec, unsigned, before == 0 || before > value ? value : before - 1)

SIMT_ATOMIC_INTEGER(int)
SIMT_ATOMIC_INTEGER(unsigned)
SIMT_ATOMIC_INTEGER(unsigned long long)
SIMT_ATOMIC(atomicExch, float, ::simt::detail::atomic_exchange(address, value))
SIMT_ATOMIC_CAS(unsigned short)

SIMT_ATOMIC_BITWISE(int)
SIMT_ATOMIC_BITWISE(unsigned)
SIMT_ATOMIC_BITWISE(long long)
SIMT_ATOMIC_BITWISE(unsigned long long)

#undef SIMT_ATOMIC_BITWISE
#undef SIMT_ATOMIC_FORM_CAS
#undef SIMT_ATOMIC_CAS
#undef SIMT_ATOMIC_INTEGER
#undef SIMT_ATOMIC_UPDATE
#undef SIMT_ATOMIC
#undef SIMT_ATOMIC_FORM
