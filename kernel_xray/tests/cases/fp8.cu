// fp8.cu: the 8-bit floating-point types of <cuda_fp8.h>. Kind 0 is e4m3, kind 1 is e5m2; a code is the type's 8 bits.
#include <cuda_fp8.h>

#include "case.h"

// ------------------------------------------------------------------------------------------------------------------
// From 8 bits: a row of float, half, bfloat16, double, the function, and a row of integers, for each code.

template <typename T>
__global__ void decode_kernel(double* out, int64_t* integers, __nv_fp8_interpretation_t kind) {
  const int code = threadIdx.x;
  T x;
  x.__x = static_cast<__nv_fp8_storage_t>(code);
  const __half raw = __nv_cvt_fp8_to_halfraw(x.__x, kind);
  store_all(out + 5 * code, float(x), __half2float(static_cast<__half>(x)),
            __bfloat162float(static_cast<__nv_bfloat16>(x)), double(x), __half2float(raw));
  store_all(integers + 9 * code, static_cast<signed char>(x), static_cast<unsigned char>(x), static_cast<short>(x),
            static_cast<unsigned short>(x), static_cast<int>(x), static_cast<unsigned>(x), static_cast<long long>(x),
            static_cast<unsigned long long>(x), static_cast<bool>(x));
}

CASE(decode) {
  decode_kernel<__nv_fp8_e4m3><<<1, 256>>>(call.data<double>(0), call.data<int64_t>(1), __NV_E4M3);
  decode_kernel<__nv_fp8_e5m2><<<1, 256>>>(call.data<double>(2), call.data<int64_t>(3), __NV_E5M2);
}

// ------------------------------------------------------------------------------------------------------------------
// To 8 bits: codes without saturation, with it, and by the constructor.

template <typename T, typename Value>
__device__ void encode(const Value x, __nv_fp8_storage_t nosat, __nv_fp8_storage_t saturated, unsigned char* codes) {
  store_all(codes, nosat, saturated, T(x).__x);
}

template <typename T>
__global__ void encode_kernel(const double* in, unsigned char* out, int n, __nv_fp8_interpretation_t kind) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double d = in[i];
  const float f = static_cast<float>(d);
  const __half h = __float2half(f);
  const __nv_bfloat16 b = __float2bfloat16(f);
  out += 12 * i;
  encode<T>(d, __nv_cvt_double_to_fp8(d, __NV_NOSAT, kind), __nv_cvt_double_to_fp8(d, __NV_SATFINITE, kind), out);
  encode<T>(f, __nv_cvt_float_to_fp8(f, __NV_NOSAT, kind), __nv_cvt_float_to_fp8(f, __NV_SATFINITE, kind), out + 3);
  encode<T>(h, __nv_cvt_halfraw_to_fp8(h, __NV_NOSAT, kind), __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, kind), out + 6);
  encode<T>(b, __nv_cvt_bfloat16raw_to_fp8(b, __NV_NOSAT, kind), __nv_cvt_bfloat16raw_to_fp8(b, __NV_SATFINITE, kind),
            out + 9);
}

CASE(encode) {
  const int n = call.size(0), blocks = (n + 127) / 128;
  encode_kernel<__nv_fp8_e4m3><<<blocks, 128>>>(call.data<double>(0), call.data<unsigned char>(1), n, __NV_E4M3);
  encode_kernel<__nv_fp8_e5m2><<<blocks, 128>>>(call.data<double>(0), call.data<unsigned char>(2), n, __NV_E5M2);
}

__global__ void of_integers_kernel(unsigned char* out) {
  store_all(out, __nv_fp8_e4m3(3).__x, __nv_fp8_e4m3(-1000l).__x, __nv_fp8_e4m3(17u).__x, __nv_fp8_e5m2(short(-3)).__x,
            __nv_fp8_e5m2(1ull << 40).__x, __nv_fp8_e5m2(70000ll).__x);
}

CASE(of_integers) { of_integers_kernel<<<1, 1>>>(call.data<unsigned char>(0)); }

// ------------------------------------------------------------------------------------------------------------------
// Pairs and fours of the same numbers: the codes, first number first, and the numbers that they stand for.

template <typename T, typename Pair, typename Four>
__device__ void store_many(const float4 x, unsigned* codes, float4* values, __nv_fp8_interpretation_t kind) {
  const __half2 low = __floats2half2_rn(x.x, x.y), high = __floats2half2_rn(x.z, x.w);
  const __nv_bfloat162 b_low = __floats2bfloat162_rn(x.x, x.y), b_high = __floats2bfloat162_rn(x.z, x.w);
  const float2 floats{x.x, x.y};
  const double2 doubles{x.x, x.y};
  store_all(codes, Four(x).__x, Four(low, high).__x, Four(b_low, b_high).__x, Pair(floats).__x, Pair(low).__x,
            Pair(b_low).__x, Pair(doubles).__x, __nv_cvt_float2_to_fp8x2(floats, __NV_NOSAT, kind),
            __nv_cvt_double2_to_fp8x2(doubles, __NV_NOSAT, kind), __nv_cvt_halfraw2_to_fp8x2(low, __NV_NOSAT, kind),
            __nv_cvt_bfloat16raw2_to_fp8x2(b_low, __NV_NOSAT, kind));
  const float2 pair = static_cast<float2>(Pair(floats)), halves = __half22float2(static_cast<__half2>(Pair(floats)));
  const float2 raw = __half22float2(__nv_cvt_fp8x2_to_halfraw2(Pair(floats).__x, kind));
  values[0] = static_cast<float4>(Four(x));
  values[1] = make_float4(pair.x, pair.y, halves.x, halves.y);
  values[2] = make_float4(raw.x, raw.y, float(T(x.z)), float(T(x.w)));
}

__global__ void many_kernel(const float4* in, unsigned* codes, float4* values) {
  const float4 x = in[threadIdx.x];
  codes += 22 * threadIdx.x;
  values += 6 * threadIdx.x;
  store_many<__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3>(x, codes, values, __NV_E4M3);
  store_many<__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2>(x, codes + 11, values + 3, __NV_E5M2);
}

CASE(many) { many_kernel<<<1, call.size(0) / 4>>>(call.data<float4>(0), call.data<unsigned>(1), call.data<float4>(2)); }
