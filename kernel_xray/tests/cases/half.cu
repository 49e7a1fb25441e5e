// half.cu: the 16-bit floating-point types: arithmetic, conversions, pairs. One template for fp16 and bf16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "case.h"

// ------------------------------------------------------------------------------------------------------------------
// Arithmetic: the operations by number, on a, b and c; each thread computes all and writes one.

template <typename T>
__global__ void arithmetic_kernel(int operation, const T* as, const T* bs, const T* cs, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T a = as[i], b = bs[i], c = cs[i];
  T compound = a;
  compound += b;
  compound *= c;
  T results[32];
  store_all(results, a + b, a - b, a * b, a / b, -a, __hadd(a, b), __hsub(a, b), __hmul(a, b), __hdiv(a, b),
            __hfma(a, b, c), __hneg(a), __habs(a), __hmax(a, b), __hmin(a, b), compound, hsqrt(__habs(a)),
            hrsqrt(__habs(a)), hexp(a), hlog(__habs(a)), hsin(a), hcos(a), hfloor(a), hceil(a), htrunc(a), hrint(a),
            hrcp(a), hexp2(a), hlog2(__habs(a)), a < b ? a : b, T(float(a) * 2.0f + 1.0f),
            static_cast<T>(static_cast<float>(a) + static_cast<float>(b)), __hadd_sat(a, b));
  out[i] = results[operation];
}

CASE(arithmetic) {
  with_type<__half, __nv_bfloat16>(call.number(0), [&](auto zero) {
    using T = decltype(zero);
    const int n = call.size(0);
    arithmetic_kernel<<<(n + 127) / 128, 128>>>(int(call.number(1)), call.data<T>(0), call.data<T>(1), call.data<T>(2),
                                                call.data<T>(3), n);
  });
}

// Comparisons: bit k of out[i] is the answer of comparison k.
template <typename T>
__global__ void comparisons_kernel(const T* a, const T* b, int* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const bool answers[] = {a[i] == b[i],      a[i] != b[i],      a[i]<b[i], a[i] <= b[i], a[i]> b[i],
                          a[i] >= b[i],      __heq(a[i], b[i]), __hne(a[i], b[i]),
                          __hlt(a[i], b[i]), __hle(a[i], b[i]), __hgt(a[i], b[i]),
                          __hge(a[i], b[i]), __hisnan(a[i]),    bool(__hisinf(a[i])),
                          __hltu(a[i], b[i])};
  int bits = 0;
  for (int k = 0; k < 15; ++k) bits |= int(answers[k]) << k;
  out[i] = bits;
}

CASE(comparisons) {
  with_type<__half, __nv_bfloat16>(call.number(0), [&](auto zero) {
    using T = decltype(zero);
    comparisons_kernel<<<1, 64>>>(call.data<T>(0), call.data<T>(1), call.data<int>(2), call.size(0));
  });
}

// ------------------------------------------------------------------------------------------------------------------
// Conversions from float: nearest even, towards zero, down, up; and round trips of integers.

__global__ void from_float_kernel(const float* in, __half* half, __nv_bfloat16* bfloat, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  const __half halves[] = {__float2half(x), __float2half_rn(x), __float2half_rz(x), __float2half_rd(x),
                           __float2half_ru(x)};
  const __nv_bfloat16 bfloats[] = {__float2bfloat16(x), __float2bfloat16_rn(x), __float2bfloat16_rz(x),
                                   __float2bfloat16_rd(x), __float2bfloat16_ru(x)};
  for (int k = 0; k < 5; ++k) {
    half[k * n + i] = halves[k];
    bfloat[k * n + i] = bfloats[k];
  }
}

CASE(from_float) {
  const int n = call.size(0);
  from_float_kernel<<<(n + 63) / 64, 64>>>(call.data<float>(0), call.data<__half>(1), call.data<__nv_bfloat16>(2), n);
}

// Every bit pattern to float: 65,536 values of either type.
__global__ void to_float_kernel(float* half, float* bfloat) {
  const unsigned short bits = static_cast<unsigned short>(blockIdx.x * blockDim.x + threadIdx.x);
  half[bits] = __half2float(__ushort_as_half(bits));
  bfloat[bits] = __bfloat162float(__ushort_as_bfloat16(bits));
}

CASE(to_float) { to_float_kernel<<<256, 256>>>(call.data<float>(0), call.data<float>(1)); }

__global__ void integers_kernel(int* out) {
  const __half h = __float2half(-2.5f);
  const __nv_bfloat16 b = __float2bfloat16(3.5f);
  store_all(out, __half2int_rz(h), __half2int_rn(h), __half2int_rd(h), __half2int_ru(h),
            __half2float(__int2half_rn(2049)), __half2float(__uint2half_rn(70u)), __half_as_short(__float2half(1.0f)),
            __half_as_ushort(__float2half(-2.0f)), __bfloat162int_rz(b), __bfloat162int_rn(b),
            __bfloat162float(__int2bfloat16_rn(257)), __bfloat16_as_short(__float2bfloat16(1.0f)),
            __bfloat16_as_ushort(__float2bfloat16(-2.0f)), int(h), float(__short_as_half(0x4200)));
}

CASE(integers) { integers_kernel<<<1, 1>>>(call.data<int>(0)); }

// ------------------------------------------------------------------------------------------------------------------
// Pairs: a row of 2 floats per operation, for the pairs a = (1.5, -2), b = (0.25, 3), c = (4, 5).

__device__ __half2 lows(__half2 a, __half2 b) { return __lows2half2(a, b); }
__device__ __nv_bfloat162 lows(__nv_bfloat162 a, __nv_bfloat162 b) { return __lows2bfloat162(a, b); }

template <typename Pair>
__device__ void pairs(Pair a, Pair b, Pair c, float2* out) {
  const Pair results[] = {__hadd2(a, b),        __hsub2(a, b), __hmul2(a, b), __h2div(a, b), __hfma2(a, b, c),
                          __hneg2(a),           __habs2(a),    __hmax2(a, b), __hmin2(a, b), __hgt2(a, b),
                          __lowhigh2highlow(a), lows(a, b),    a + b * c};
  for (int k = 0; k < 13; ++k) out[k] = make_float2(__low2float(results[k]), __high2float(results[k]));
  out[13] = make_float2(float(a.x), float(b.y));
  out[14] = make_float2(__hbgt2(a, b) ? 1.0f : 0.0f, __hbne2(a, b) ? 1.0f : 0.0f);
}

__global__ void pairs_kernel(float2* half, float2* bfloat) {
  const float2 a = make_float2(1.5f, -2.0f), b = make_float2(0.25f, 3.0f);
  pairs(__floats2half2_rn(a.x, a.y), __float22half2_rn(b), __halves2half2(__float2half(4.0f), __float2half(5.0f)),
        half);
  pairs(__floats2bfloat162_rn(a.x, a.y), __float22bfloat162_rn(b),
        __halves2bfloat162(__float2bfloat16(4.0f), __float2bfloat16(5.0f)), bfloat);
  half[15] = __half22float2(__half2half2(__high2half(__floats2half2_rn(a.x, a.y))));
  bfloat[15] = __bfloat1622float2(__bfloat162bfloat162(__high2bfloat16(__floats2bfloat162_rn(a.x, a.y))));
}

CASE(pairs) { pairs_kernel<<<1, 1>>>(call.data<float2>(0), call.data<float2>(1)); }

// Pairs in memory, 8 halves to a 16-byte access; and a shuffle of halves.
__global__ void axpy_kernel(const __half2* x, __half2* y, __half scale, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma2(__half2half2(scale), x[i], y[i]);
}

__global__ void wide_copy_kernel(const __half* in, __half* out) {
  const uint4 bits = reinterpret_cast<const uint4*>(in)[threadIdx.x];
  const __half2* pairs = reinterpret_cast<const __half2*>(&bits);
  for (int k = 0; k < 4; ++k) {
    out[8 * threadIdx.x + 2 * k] = __low2half(pairs[k]);
    out[8 * threadIdx.x + 2 * k + 1] = __shfl_sync(0xffffffffu, __high2half(pairs[k]), 31 - int(threadIdx.x));
  }
}

CASE(half_memory) {
  const int n = call.size(0) / 2;
  axpy_kernel<<<(n + 31) / 32, 32>>>(call.data<__half2>(0), call.data<__half2>(1), __float2half(0.5f), n);
  wide_copy_kernel<<<1, 32>>>(call.data<__half>(0), call.data<__half>(2));
}
