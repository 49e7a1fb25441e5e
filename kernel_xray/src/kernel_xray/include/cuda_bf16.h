// cuda_bf16.h: __nv_bfloat16 and __nv_bfloat162, with CUDA's conversions, arithmetic, comparisons and maths,
// implemented like cuda_fp16.h, which it includes.
#pragma once
#define __CUDA_BF16_H__

#include "cuda_fp16.h"

namespace c10 {
struct BFloat16;
}

#define SIMT_T __nv_bfloat16
#define SIMT_T2 __nv_bfloat162
#define SIMT_RAW __nv_bfloat16_raw
#define SIMT_RAW2 __nv_bfloat162_raw
#define SIMT_OTHER __half
#define SIMT_W bfloat16
#define SIMT_FORMAT ::simt::Brain16
#define SIMT_TORCH ::c10::BFloat16
#define SIMT_TORCH_EXPLICIT explicit
#if defined(__CUDA_NO_BFLOAT16_CONVERSIONS__)
#define SIMT_CONVERSIONS 0
#else
#define SIMT_CONVERSIONS 1
#endif
#if defined(__CUDA_NO_BFLOAT16_OPERATORS__)
#define SIMT_OPERATORS 0
#else
#define SIMT_OPERATORS 1
#endif
#if defined(__CUDA_NO_BFLOAT162_OPERATORS__)
#define SIMT_OPERATORS2 0
#else
#define SIMT_OPERATORS2 1
#endif
#include "simt/narrow_types.inc"
#include "simt/narrow_conversions.inc"
#include "simt/narrow_arithmetic.inc"

#if !defined(__CUDA_NO_HALF_CONVERSIONS__)
inline __half::__half(const __nv_bfloat16 value) : __x(::simt::Binary16::encode(::simt::widen(value))) {}
#endif
#if !defined(__CUDA_NO_BFLOAT16_CONVERSIONS__)
inline __nv_bfloat16::__nv_bfloat16(const __half value) : __x(::simt::Brain16::encode(::simt::widen(value))) {}
#endif

#if !defined(CUDA_NO_BFLOAT16)
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
#endif
