// Atomic.cuh: replaces PyTorch's header of this name: atomicAdd for PyTorch's types, and gpuAtomicAdd, -Mul, -Max and
// -Min.
//
// All are compare-and-swap loops on the type itself, and all return the old value, also where PyTorch's return nothing.
// A complex number is updated as two real numbers, as in PyTorch.
#pragma once

#include <c10/cuda/CUDAMacros.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

#include <simt/atomics.h>

#include <type_traits>

namespace simt::detail {

// The larger of two; NaN if either is NaN.
template <typename T>
T larger(T a, T b) {
  return a != a || b < a ? a : b;
}
template <typename T>
T smaller(T a, T b) {
  return a != a || a < b ? a : b;
}

template <typename T>
inline constexpr bool is_atomic_number =
    std::is_arithmetic_v<T> || std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

}  // namespace simt::detail

#define SIMT_GPU_ATOMIC(name, after)                                                       \
  template <typename T, typename = std::enable_if_t<simt::detail::is_atomic_number<T>>>    \
  inline T name(T* address, std::common_type_t<T> value) {                                 \
    return simt::detail::atomic_update(address, [value](T before) -> T { return after; }); \
  }

SIMT_GPU_ATOMIC(gpuAtomicAdd, static_cast<T>(before + value))
SIMT_GPU_ATOMIC(gpuAtomicMul, static_cast<T>(before* value))
SIMT_GPU_ATOMIC(gpuAtomicMax, simt::detail::larger<T>(before, value))
SIMT_GPU_ATOMIC(gpuAtomicMin, simt::detail::smaller<T>(before, value))
#undef SIMT_GPU_ATOMIC

template <typename T>
inline void gpuAtomicAdd(c10::complex<T>* address, c10::complex<T> value) {
  gpuAtomicAdd(reinterpret_cast<T*>(address), value.real());
  gpuAtomicAdd(reinterpret_cast<T*>(address) + 1, value.imag());
}

template <typename T, typename Value>
inline void gpuAtomicAddNoReturn(T* address, Value value) {
  gpuAtomicAdd(address, static_cast<T>(value));
}

// The types for which CUDA itself has no atomicAdd.
#define SIMT_ATOMIC_ADD(T) \
  inline T atomicAdd(T* address, T value) { return gpuAtomicAdd(address, value); }
SIMT_ATOMIC_ADD(c10::Half)
SIMT_ATOMIC_ADD(c10::BFloat16)
SIMT_ATOMIC_ADD(uint8_t)
SIMT_ATOMIC_ADD(int8_t)
SIMT_ATOMIC_ADD(int16_t)
SIMT_ATOMIC_ADD(int64_t)
SIMT_ATOMIC_ADD(bool)
#undef SIMT_ATOMIC_ADD
