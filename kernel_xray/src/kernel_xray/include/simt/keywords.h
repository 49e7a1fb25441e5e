// keywords.h: CUDA's keywords and built-in variables, for the text of kernels only.
//
// Included last by cuda_runtime.h. `__noinline__`, which would break the host's own headers, is not here: the rewriter
// replaces it in the learner's text.
#pragma once

#include "core.h"

inline constexpr int warpSize = 32;  // not a macro: cudaDeviceProp has a member of that name

// A traced kernel inlines all its calls: g++ calls no hook for a struct, such as a Half, that is read from memory only
// to be passed by value.
#if defined(SIMT_TRACED) && !defined(__clang__)
#define __global__ __attribute__((flatten))
#else
#define __global__
#endif
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

inline constexpr ::simt::ThreadIndex threadIdx{};
inline constexpr ::simt::BlockIndex blockIdx{};
inline constexpr ::simt::BlockDim blockDim{};
inline constexpr ::simt::GridDim gridDim{};
#define simt_tIdx ::simt::here(threadIdx)  // what the rewriter puts where these names are used
#define simt_bIx ::simt::here(blockIdx)
#define simt_bDm ::simt::here(blockDim)
#define simt_gD ::simt::here(gridDim)

// What the rewriter puts where the learner's text asks which compiler this is, and for which device: nvcc, sm_90a, or
// sm_100a if the flags ask for it (kernel_xray/build/flags.py). The device is then a Blackwell for the whole process.
#define __SIMTCC__ 1             // __CUDACC__, __NVCC__
#define __SIMTCC_VER_MAJOR__ 13  // __CUDACC_VER_MAJOR__
#define __SIMTCC_VER_MINOR__ 0   // __CUDACC_VER_MINOR__
#ifdef SIMT_BLACKWELL
#define __SIMT_ARCH__ 1000  // __CUDA_ARCH__, and so on
#define __SIMT_ARCH_FEAT_SM100_ALL 1
#define __SIMT_ARCH_SPECIFIC__ 1000
#define __SIMT_ARCH_FAMILY_SPECIFIC__ 1000
[[maybe_unused]] static const bool simt_is_blackwell = ::simt::set_compute_capability(10);
#else
#define __SIMT_ARCH__ 900
#define __SIMT_ARCH_FEAT_SM90_ALL 1
#endif
