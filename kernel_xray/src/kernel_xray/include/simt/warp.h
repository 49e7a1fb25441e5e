// warp.h: barriers of a block, and the collectives of a warp (shuffles, votes, matches, reductions).
//
// Each function is a thin wrapper around simt::block_barrier or simt::warp_collective. As on a GPU since Volta, every
// lane named in the mask must make the same call; the value read from a lane outside the mask is undefined (here: all
// ones).
#pragma once

#include "bits.h"
#include "core.h"
#include "whole.h"

// ---------------------------------------------------------------------------------------------------------------
// The block

inline void __cluster_barrier_arrive() { ::simt::cluster_arrive(); }
inline void __cluster_barrier_arrive_relaxed() { ::simt::cluster_arrive(); }
inline void __cluster_barrier_wait() { ::simt::cluster_barrier(); }
inline void __syncthreads() { ::simt::block_barrier(::simt::Vote::sync, 0); }
inline int __syncthreads_count(int predicate) { return ::simt::block_barrier(::simt::Vote::count, predicate); }
inline int __syncthreads_and(int predicate) { return ::simt::block_barrier(::simt::Vote::all, predicate); }
inline int __syncthreads_or(int predicate) { return ::simt::block_barrier(::simt::Vote::any, predicate); }

// ---------------------------------------------------------------------------------------------------------------
// The warp

namespace simt {

// The lane that a shuffle reads from. `width` (a power of two) cuts the warp into segments; a lane that would read
// past its segment's end reads itself. Reading from an earlier segment is allowed (xor with a mask >= width).
inline unsigned shuffle_source_index(unsigned lane, unsigned index, unsigned width) {
  return (lane & ~(width - 1)) | (index & (width - 1));
}
inline unsigned shuffle_source_up(unsigned lane, unsigned delta, unsigned width) {
  delta &= kWarpSize - 1;
  return (lane & (width - 1)) >= delta ? lane - delta : lane;
}
inline unsigned shuffle_source_down(unsigned lane, unsigned delta, unsigned width) {
  delta &= kWarpSize - 1;
  return (lane & (width - 1)) + delta < width ? lane + delta : lane;
}
inline unsigned shuffle_source_xor(unsigned lane, unsigned lane_mask, unsigned width) {
  const unsigned source = lane ^ (lane_mask & (kWarpSize - 1));
  return source <= (lane | (width - 1)) ? source : lane;
}

namespace detail {

// Gives the value of lane `source`; values larger than 8 bytes travel in several exchanges.
template <typename T>
inline T exchange(unsigned mask, const T& value, unsigned source) {
  static_assert(is_plain<T>, "a shuffled type must be trivially copyable");
  T result = value;
  for (size_t at = 0; at < sizeof(T); at += 8) {
    const size_t bytes = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
    uint64_t word = 0;
    __builtin_memcpy(&word, reinterpret_cast<const char*>(&value) + at, bytes);
    word = warp_collective(Collective::shuffle, mask, word, source);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + at, &word, bytes);
  }
  return result;
}

template <typename T>
inline uint64_t match_bits(T value) {
  uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof(T));
  return word;
}

}  // namespace detail
}  // namespace simt

// CUDA's four shuffles for one type; cuda_fp16.h and cuda_bf16.h use it again.
#define SIMT_SHUFFLES(T)                                                                                        \
  inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {                                    \
    return ::simt::detail::exchange(mask, value, ::simt::shuffle_source_index(::simt::lane(), source, width));  \
  }                                                                                                             \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {                             \
    return ::simt::detail::exchange(mask, value, ::simt::shuffle_source_up(::simt::lane(), delta, width));      \
  }                                                                                                             \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {                           \
    return ::simt::detail::exchange(mask, value, ::simt::shuffle_source_down(::simt::lane(), delta, width));    \
  }                                                                                                             \
  inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {                             \
    return ::simt::detail::exchange(mask, value, ::simt::shuffle_source_xor(::simt::lane(), lane_mask, width)); \
  }

#define SIMT_MATCHES(T)                                                                                   \
  inline unsigned __match_any_sync(unsigned mask, T value) {                                              \
    return static_cast<unsigned>(                                                                         \
        ::simt::warp_collective(::simt::Collective::match_any, mask, ::simt::detail::match_bits(value))); \
  }                                                                                                       \
  inline unsigned __match_all_sync(unsigned mask, T value, int* predicate) {                              \
    const auto same = static_cast<unsigned>(                                                              \
        ::simt::warp_collective(::simt::Collective::match_all, mask, ::simt::detail::match_bits(value))); \
    *predicate = same != 0;                                                                               \
    return same;                                                                                          \
  }

#define SIMT_SHUFFLES_AND_MATCHES(T) SIMT_SHUFFLES(T) SIMT_MATCHES(T)
SIMT_SHUFFLES_AND_MATCHES(int)
SIMT_SHUFFLES_AND_MATCHES(unsigned)
SIMT_SHUFFLES_AND_MATCHES(long)
SIMT_SHUFFLES_AND_MATCHES(unsigned long)
SIMT_SHUFFLES_AND_MATCHES(long long)
SIMT_SHUFFLES_AND_MATCHES(unsigned long long)
SIMT_SHUFFLES_AND_MATCHES(float)
SIMT_SHUFFLES_AND_MATCHES(double)
#undef SIMT_SHUFFLES_AND_MATCHES
#undef SIMT_MATCHES

inline void __syncwarp(unsigned mask = 0xffffffffu) { ::simt::warp_collective(::simt::Collective::sync, mask, 0); }
inline unsigned __activemask() { return ::simt::active_mask(); }

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(::simt::warp_collective(::simt::Collective::ballot, mask, predicate != 0));
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

#define SIMT_REDUCTION(name, T, collective)                                                           \
  inline T name(unsigned mask, T value) {                                                             \
    return static_cast<T>(                                                                            \
        ::simt::warp_collective(::simt::Collective::collective, mask, static_cast<unsigned>(value))); \
  }
SIMT_REDUCTION(__reduce_add_sync, unsigned, add_u32)
SIMT_REDUCTION(__reduce_add_sync, int, add_u32)
SIMT_REDUCTION(__reduce_min_sync, unsigned, min_u32)
SIMT_REDUCTION(__reduce_min_sync, int, min_s32)
SIMT_REDUCTION(__reduce_max_sync, unsigned, max_u32)
SIMT_REDUCTION(__reduce_max_sync, int, max_s32)
SIMT_REDUCTION(__reduce_and_sync, unsigned, and_u32)
SIMT_REDUCTION(__reduce_or_sync, unsigned, or_u32)
SIMT_REDUCTION(__reduce_xor_sync, unsigned, xor_u32)
#undef SIMT_REDUCTION
