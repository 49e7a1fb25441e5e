// cuda_fp16.h: __half and __half2 (half, half2), with CUDA's conversions, arithmetic, comparisons and maths.
//
// Values are stored in 16 bits, computed in float and rounded once. The macros that switch off operators and
// conversions in CUDA (PyTorch's build sets them) do so here.
#pragma once
#define __CUDA_FP16_H__

#include "simt/atomics.h"
#include "simt/intrinsics.h"
#include "simt/narrow_formats.h"
#include "simt/vector_types.h"
#include "simt/warp.h"

struct __nv_bfloat16;
namespace c10 {
struct Half;
}

#define SIMT_T __half
#define SIMT_T2 __half2
#define SIMT_RAW __half_raw
#define SIMT_RAW2 __half2_raw
#define SIMT_OTHER __nv_bfloat16
#define SIMT_W half
#define SIMT_FORMAT ::simt::Binary16
#define SIMT_TORCH ::c10::Half
#define SIMT_TORCH_EXPLICIT
#if defined(__CUDA_NO_HALF_CONVERSIONS__)
#define SIMT_CONVERSIONS 0
#else
#define SIMT_CONVERSIONS 1
#endif
#if defined(__CUDA_NO_HALF_OPERATORS__)
#define SIMT_OPERATORS 0
#else
#define SIMT_OPERATORS 1
#endif
#if defined(__CUDA_NO_HALF2_OPERATORS__)
#define SIMT_OPERATORS2 0
#else
#define SIMT_OPERATORS2 1
#endif
#include "simt/narrow_types.inc"
#include "simt/narrow_conversions.inc"
#include "simt/narrow_arithmetic.inc"

using __nv_half = __half;
using __nv_half2 = __half2;
using __nv_half_raw = __half_raw;
using __nv_half2_raw = __half2_raw;
using nv_half = __half;
using nv_half2 = __half2;
#if !defined(CUDA_NO_HALF)
using half = __half;
using half2 = __half2;
#endif
