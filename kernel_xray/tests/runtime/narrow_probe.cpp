// narrow_probe.cpp: the 16-bit types as plain C functions over arrays, for test_simt_halves.py to compare with NumPy.
#include "cuda_bf16.h"

#define EACH for (long i = 0; i < n; ++i)
#define ROUNDED(function, x) \
  (mode == 0 ? function##_rn(x) : mode == 1 ? function##_rz(x) : mode == 2 ? function##_ru(x) : function##_rd(x))
#define PROBE(prefix, T, T2, word, as_bits, from_bits)                                                                 \
  extern "C" void prefix##_to_float(const unsigned short* in, float* out, long n) {                                    \
    EACH out[i] = __##word##2float(from_bits(in[i]));                                                                  \
  }                                                                                                                    \
  extern "C" void prefix##_from_float(const float* in, unsigned short* out, long n, int mode) {                        \
    EACH out[i] = as_bits(mode == 4 ? __float2##word(in[i]) : ROUNDED(__float2##word, in[i]));                         \
  }                                                                                                                    \
  extern "C" void prefix##_from_double(const double* in, unsigned short* out, long n) {                                \
    EACH out[i] = as_bits(__double2##word(in[i]));                                                                     \
  }                                                                                                                    \
  extern "C" void prefix##_from_long(const long long* in, unsigned short* out, long n, int mode) {                     \
    EACH out[i] = as_bits(ROUNDED(__ll2##word, in[i]));                                                                \
  }                                                                                                                    \
  extern "C" void prefix##_arithmetic(const unsigned short* a, const unsigned short* b, unsigned short* out, long n,   \
                                      int operation) {                                                                 \
    EACH {                                                                                                             \
      const T x = from_bits(a[i]), y = from_bits(b[i]);                                                                \
      T compound = x;                                                                                                  \
      compound += y;                                                                                                   \
      compound *= y;                                                                                                   \
      const T values[] = {__hadd(x, y), __hsub(x, y), __hmul(x, y), __hdiv(x, y), x + y, x - y, x * y, x / y,          \
                          __hmin(x, y), __hmax(x, y), __hmin_nan(x, y), __hmax_nan(x, y), __hadd_sat(x, y), compound,  \
                          x < y ? x : y};                                                                              \
      out[i] = as_bits(values[operation]);                                                                             \
    }                                                                                                                  \
  }                                                                                                                    \
  extern "C" void prefix##_fma(const unsigned short* a, const unsigned short* b, const unsigned short* c,              \
                               unsigned short* out, long n) {                                                          \
    EACH out[i] = as_bits(__hfma(from_bits(a[i]), from_bits(b[i]), from_bits(c[i])));                                  \
  }                                                                                                                    \
  extern "C" void prefix##_compare(const unsigned short* a, const unsigned short* b, unsigned* out,                    \
                                   long n) { /* one bit per comparison */                                              \
    EACH {                                                                                                             \
      const T x = from_bits(a[i]), y = from_bits(b[i]);                                                                \
      out[i] = static_cast<unsigned>(                                                                                  \
          (x == y) << 15 | (x != y) << 16 | (x < y) << 17 | (x <= y) << 18 | (x > y) << 19 | (x >= y) << 20 |          \
          __heq(x, y) | __hne(x, y) << 1 | __hlt(x, y) << 2 | __hle(x, y) << 3 | __hgt(x, y) << 4 | __hge(x, y) << 5 | \
          __hequ(x, y) << 6 | __hneu(x, y) << 7 | __hltu(x, y) << 8 | __hleu(x, y) << 9 | __hgtu(x, y) << 10 |         \
          __hgeu(x, y) << 11 | __hisnan(x) << 12 | (__hisinf(x) & 3) << 13);                                           \
    }                                                                                                                  \
  }                                                                                                                    \
  extern "C" void prefix##_to_int(const unsigned short* in, int* out, long n, int mode) {                              \
    EACH out[i] = ROUNDED(__##word##2int, from_bits(in[i]));                                                           \
  }                                                                                                                    \
  extern "C" void prefix##_maths(const unsigned short* in, unsigned short* out, long n, int function) {                \
    T (*const functions[])(T) = {hexp,   hlog,   hsqrt, hrsqrt, hrcp,  hsin,   hcos,   htanh,  hceil,                  \
                                 hfloor, htrunc, hrint, hexp2,  hlog2, hexp10, hlog10, __hneg, __habs};                \
    EACH out[i] = as_bits(functions[function](from_bits(in[i])));                                                      \
  }                                                                                                                    \
  extern "C" int prefix##_pairs() { /* 0, or the number of the first failed check */                                   \
    const T one = __float2##word(1), two = __float2##word(2), nan = from_bits(0x7fff);                                 \
    const T2 p = __halves2##word##2(one, two), q = __float2##word##2_rn(3);                                            \
    const auto is = [](T2 v, float x, float y) { return __low2float(v) == x && __high2float(v) == y; };                \
    if (sizeof(T2) != 4 || alignof(T2) != 4 || sizeof(T) != 2) return 1;                                               \
    if (!is(__hadd2(p, q), 4, 5) || !is(__hsub2(p, q), -2, -1) || !is(__hmul2(p, q), 3, 6)) return 2;                  \
    if (!is(__h2div(q, p), 3, 1.5f) || !is(__hfma2(p, q, p), 4, 8) || !is(__hneg2(p), -1, -2)) return 3;               \
    if (!is(__habs2(__hneg2(p)), 1, 2) || !is(__hmax2(p, __lowhigh2highlow(p)), 2, 2)) return 4;                       \
    if (!is(__heq2(p, __floats2##word##2_rn(1, 3)), 1, 0) || __hlt2_mask(p, q) != ~0u) return 5;                       \
    if (__heq2_mask(p, __floats2##word##2_rn(0, 2)) != 0xffff0000u) return 6;                                          \
    if (!__hble2(p, q) || __hbeq2(p, q) || !__hbneu2(p, q) || __hbge2(p, q)) return 7;                                 \
    if (!is(__hisnan2(T2(one, nan)), 0, 1) || !is(__hfma2_relu(p, q, __hneg2(q)), 0, 3)) return 8;                     \
    if (!is(__hmul2_sat(p, __floats2##word##2_rn(-1, 1)), 0, 1)) return 9;                                             \
    if (!is(__hcmadd(p, p, q), 0, 7)) return 10; /* (1 + 2i)^2 + 3 + 3i */                                             \
    if (!is(__lows2##word##2(p, q), 1, 3) || !is(__highs2##word##2(p, q), 2, 3)) return 11;                            \
    if (!is(__low2##word##2(p), 1, 1) || !is(__high2##word##2(p), 2, 2)) return 12;                                    \
    if (!is(make_##word##2(two, one), 2, 1) || !is(__float22##word##2_rn(make_float2(5, 6)), 5, 6)) return 13;         \
    if (!is(h2sqrt(q * q), 3, 3) || !is(-p + q, 2, 1) || !(p != q) || p == q) return 14;                               \
    T t = two;                                                                                                         \
    t += one;                                                                                                          \
    ++t;                                                                                                               \
    t *= two;                                                                                                          \
    t -= one;                                                                                                          \
    t /= two;                                                                                                          \
    if (!(t == T(3.5f)) || t != T(3.5) || !(t > two) || -t > two || float(t--) != 3.5f) return 15;                     \
    if (int(t) != 2 || T(3) != T(3u) || T(3ll) != T(short(3)) || !T(1) || bool(T(-0.0f))) return 16;                   \
    t = 7;                                                                                                             \
    if (static_cast<float>(t) != 7 || (T2{one, two}).y != two || __low2##word(p) != one) return 17;                    \
    if (!__hisnan(__hadd(nan, one)) || as_bits(__hadd(nan, one)) != 0x7fff) return 18;                                 \
    if (__hadd_sat(nan, one) != T(0) || !__hisnan(__hfma_relu(nan, one, one))) return 19;                              \
    if (as_bits(__hfma_relu(T(-0.0f), one, T(-0.0f))) != 0) return 20;                                                 \
    if (float(__int2##word##_rn(2049)) != 2048 || float(__uint2##word##_rn(70u)) != 70) return 21;                     \
    if (__##word##_as_short(-two) != short(as_bits(-two)) || __short_as_##word(short(as_bits(two))) != two) return 22; \
    if (!is(__hmin2(p, __lowhigh2highlow(p)), 1, 1) || !is(__hgt2(q, p), 1, 1)) return 23;                             \
    if (!__hbgt2(q, p) || __hbgt2(p, q) || !__hbne2(p, q) || __hbne2(p, p)) return 24;                                 \
    if (__##word##22float2(p).y != 2 || !is(__##word##2##word##2(two), 2, 2) || __high2##word(p) != two) return 25;    \
    return 0;                                                                                                          \
  }

PROBE(half, __half, __half2, half, __half_as_ushort, __ushort_as_half)
PROBE(bfloat16, __nv_bfloat16, __nv_bfloat162, bfloat16, __bfloat16_as_ushort, __ushort_as_bfloat16)

extern "C" int between_the_types() {
  const __half h = __float2half(1.0f / 3);
  const __nv_bfloat16 b(h);
  return float(b) == __bfloat162float(__float2bfloat16(__half2float(h))) && float(__half(b)) == float(b) ? 0 : 1;
}
