// intrinsics.h: integer and bit intrinsics, cached loads and stores, fences, clocks. Conversions between integers and
// floating point are in conversions.h.
//
// Cache hints do nothing here; the loads and stores keep the width of their access. clock64() counts host cycles (or
// nanoseconds): good for a delay loop, meaningless as a measurement. clock() is the C library's.
#pragma once

#include <time.h>

#include "bits.h"
#include "core.h"
#include "vector_types.h"

// ---------------------------------------------------------------------------------------------------------------
// Bits

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

inline unsigned __brev(unsigned x) {
  x = __builtin_bswap32(x);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  return (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}

// Byte n of the result is byte (selector >> 4n) & 7 of y:x.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = uint64_t(y) << 32 | x;
  unsigned result = 0;
  for (int n = 0; n < 4; ++n) {
    const unsigned from = selector >> (4 * n) & 7u;
    result |= (static_cast<unsigned>(bytes >> (8 * from)) & 0xffu) << (8 * n);
  }
  return result;
}

// Shifts of the 64-bit value high:low; `l` and `r` take the shift modulo 32, `lc` and `rc` clamp it to 32.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((uint64_t(high) << 32 | low) << (shift & 31u)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((uint64_t(high) << 32 | low) >> (shift & 31u));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// The position of the offset-th set bit of mask, counted from bit `base` upwards (offset > 0) or downwards (offset < 0;
// 0 asks whether `base` itself is set); 0xffffffff where there is none.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  int left = offset > 0 ? offset : offset < 0 ? -offset : 1;
  for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += offset < 0 ? -1 : 1) {
    if ((mask >> bit & 1u) && --left == 0) return static_cast<unsigned>(bit);
    if (offset == 0) break;
  }
  return 0xffffffffu;
}

inline unsigned short __nv_bswap16(unsigned short x) { return __builtin_bswap16(x); }
inline unsigned __nv_bswap32(unsigned x) { return __builtin_bswap32(x); }
inline unsigned long long __nv_bswap64(unsigned long long x) { return __builtin_bswap64(x); }

// ---------------------------------------------------------------------------------------------------------------
// Integer arithmetic

inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<int64_t>(x) * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(uint64_t(x) * y >> 32); }
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
inline int __mul24(int x, int y) {  // the low 24 bits of each, sign-extended
  const auto extend = [](int v) { return static_cast<int64_t>(static_cast<int>(static_cast<unsigned>(v) << 8) >> 8); };
  return static_cast<int>(extend(x) * extend(y));
}
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }

inline unsigned __sad(int x, int y, unsigned z) {
  return (x > y ? unsigned(x) - unsigned(y) : unsigned(y) - unsigned(x)) + z;
}
inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }
inline int __hadd(int x, int y) { return static_cast<int>((static_cast<int64_t>(x) + y) >> 1); }
inline int __rhadd(int x, int y) { return static_cast<int>((static_cast<int64_t>(x) + y + 1) >> 1); }
inline unsigned __uhadd(unsigned x, unsigned y) { return static_cast<unsigned>((uint64_t(x) + y) >> 1); }
inline unsigned __urhadd(unsigned x, unsigned y) { return static_cast<unsigned>((uint64_t(x) + y + 1) >> 1); }

namespace simt::detail {
// c + the dot product of `Count` elements packed in the words a and b, those of b from element `first` on.
template <typename A, typename B, int Count, typename C>
inline C dot(unsigned a, unsigned b, C c, int first = 0) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < Count; ++i) {
    const auto x = static_cast<A>(a >> (8 * sizeof(A) * i));
    const auto y = static_cast<B>(b >> (8 * sizeof(B) * (i + first)));
    sum += static_cast<unsigned>(x * static_cast<int>(y));
  }
  return static_cast<C>(sum);
}
}  // namespace simt::detail

inline int __dp4a(int a, int b, int c) { return ::simt::detail::dot<signed char, signed char, 4>(a, b, c); }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return ::simt::detail::dot<unsigned char, unsigned char, 4>(a, b, c);
}
inline int __dp4a(char4 a, char4 b, int c) { return __dp4a(::simt::bit_cast<int>(a), ::simt::bit_cast<int>(b), c); }
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(::simt::bit_cast<unsigned>(a), ::simt::bit_cast<unsigned>(b), c);
}
#define SIMT_DP2A(name, first)                                                                                      \
  inline int name(int a, int b, int c) { return ::simt::detail::dot<short, signed char, 2>(a, b, c, first); }       \
  inline unsigned name(unsigned a, unsigned b, unsigned c) {                                                        \
    return ::simt::detail::dot<unsigned short, unsigned char, 2>(a, b, c, first);                                   \
  }                                                                                                                 \
  inline int name(short2 a, char4 b, int c) { return name(::simt::bit_cast<int>(a), ::simt::bit_cast<int>(b), c); } \
  inline unsigned name(ushort2 a, uchar4 b, unsigned c) {                                                           \
    return name(::simt::bit_cast<unsigned>(a), ::simt::bit_cast<unsigned>(b), c);                                   \
  }
SIMT_DP2A(__dp2a_lo, 0)
SIMT_DP2A(__dp2a_hi, 2)
#undef SIMT_DP2A

// ---------------------------------------------------------------------------------------------------------------
// Loads and stores with cache hints

#define SIMT_CACHED_LOAD(name)                                                   \
  template <typename T>                                                          \
  inline T name(const T* address) {                                              \
    static_assert(sizeof(T) <= 16 && ::simt::is_plain<T>,                        \
                  #name " loads built-in and vector types of at most 16 bytes"); \
    return *address;                                                             \
  }
#define SIMT_CACHED_STORE(name)                                                   \
  template <typename T>                                                           \
  inline void name(T* address, std::common_type_t<T> value) {                     \
    static_assert(sizeof(T) <= 16 && ::simt::is_plain<T>,                         \
                  #name " stores built-in and vector types of at most 16 bytes"); \
    *address = value;                                                             \
  }
SIMT_CACHED_LOAD(__ldg)
SIMT_CACHED_LOAD(__ldca)
SIMT_CACHED_LOAD(__ldcg)
SIMT_CACHED_LOAD(__ldcs)
SIMT_CACHED_LOAD(__ldlu)
SIMT_CACHED_LOAD(__ldcv)
SIMT_CACHED_STORE(__stwb)
SIMT_CACHED_STORE(__stcg)
SIMT_CACHED_STORE(__stcs)
SIMT_CACHED_STORE(__stwt)
#undef SIMT_CACHED_LOAD
#undef SIMT_CACHED_STORE

inline size_t __cvta_generic_to_shared(const void* address) { return ::simt::shared_address(address); }

// ---------------------------------------------------------------------------------------------------------------
// Fences, clocks, traps

inline void __threadfence_block() {
  [[maybe_unused]] const ::simt::InScope<::simt::Scope::block> in_scope;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

inline long long clock64() {
#if defined(__x86_64__)
  return static_cast<long long>(__builtin_ia32_rdtsc());
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
#endif
}
inline void __nanosleep(unsigned) { ::simt::yield_thread(); }  // lets the block's other threads run
inline void cudaGridDependencySynchronize() { ::simt::wait_for_kernel_before(); }
inline void cudaTriggerProgrammaticLaunchCompletion() { ::simt::let_next_kernel_begin(); }
[[noreturn]] inline void __brkpt() {
  ::simt::fault("trap", "the kernel called __brkpt(), and no debugger is attached");
}
[[noreturn]] inline void __trap() { ::simt::fault("trap", "the kernel called __trap()"); }

#if !defined(__clang__)
#define __builtin_assume(expression) ((expression) ? static_cast<void>(0) : __builtin_unreachable())
#endif
#define __assume(expression) __builtin_assume(expression)
