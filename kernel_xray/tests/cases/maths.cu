// maths.cu: CUDA's mathematical functions, by name.
#include <math_constants.h>

#include <cfloat>
#include <climits>
#include <cstring>

#include "case.h"

// ------------------------------------------------------------------------------------------------------------------
// Functions by name: `numbers` holds the characters of the function's name.

// clang-format off
#define UNARY_FLOAT(F)                                                                                             \
  F(sinf) F(cosf) F(tanf) F(asinf) F(acosf) F(atanf) F(sinhf) F(coshf) F(tanhf) F(asinhf) F(acoshf) F(atanhf)      \
  F(expf) F(exp2f) F(exp10f) F(expm1f) F(logf) F(log2f) F(log10f) F(log1pf) F(sqrtf) F(rsqrtf) F(cbrtf) F(rcbrtf)  \
  F(erff) F(erfcf) F(erfinvf) F(erfcinvf) F(normcdff) F(normcdfinvf) F(lgammaf) F(tgammaf) F(sinpif) F(cospif)     \
  F(floorf) F(ceilf) F(truncf) F(rintf) F(nearbyintf) F(roundf) F(fabsf) F(logbf) F(j0f) F(erfcxf)                 \
  F(__expf) F(__exp10f) F(__logf) F(__log2f) F(__log10f) F(__sinf) F(__cosf) F(__tanf) F(__saturatef)              \
  F(__frcp_rn) F(__fsqrt_rn) F(__frsqrt_rn) F(exp) F(log) F(sqrt) F(rsqrt) F(tanh) F(sin) F(fabs) F(abs) F(floor)
#define UNARY_DOUBLE(F)                                                                                            \
  F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(exp) F(exp2) F(exp10) F(expm1) F(log)     \
  F(log2) F(log10) F(log1p) F(sqrt) F(rsqrt) F(cbrt) F(erf) F(erfc) F(erfinv) F(normcdf) F(lgamma) F(tgamma)       \
  F(sinpi) F(cospi) F(floor) F(ceil) F(trunc) F(rint) F(round) F(fabs) F(__dsqrt_rn) F(__drcp_rn) F(rcbrt)        \
  F(erfcx) F(erfcinv) F(normcdfinv) F(cyl_bessel_i0) F(cyl_bessel_i1)
#define BINARY_FLOAT(F)                                                                                            \
  F(powf) F(atan2f) F(hypotf) F(rhypotf) F(fmodf) F(remainderf) F(fmaxf) F(fminf) F(fdimf) F(copysignf)            \
  F(nextafterf) F(fdividef) F(__powf) F(__fdividef) F(pow) F(max) F(min) F(fmax)
#define BINARY_DOUBLE(F)                                                                                           \
  F(pow) F(atan2) F(hypot) F(rhypot) F(fmod) F(fmax) F(fmin) F(copysign) F(max) F(min) F(__dadd_rn) F(__dmul_rn)
// clang-format on

// An operator of the functions in LIST. tensors: one or two of arguments, the results.
#define NAME(function) #function,
#define UNARY(function) \
  if (which == k++) y = function(x[i]);
#define BINARY(function) \
  if (which == k++) y = function(x[i], w[i]);
#define CASE_OF_FUNCTIONS(operation, T, LIST, APPLY)                                                         \
  __global__ void operation##_kernel(int which, const T* x, const T* w, T* out, int n) {                     \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                                                     \
    if (i >= n) return;                                                                                      \
    int k = 0;                                                                                               \
    T y = CUDART_NAN;                                                                                        \
    LIST(APPLY)                                                                                              \
    out[i] = y;                                                                                              \
  }                                                                                                          \
  CASE(operation) {                                                                                          \
    const int n = call.size(0), which = index_of({LIST(NAME)}, call);                                        \
    const size_t last = call.tensors.size() - 1;                                                             \
    const auto kernel = operation##_kernel;                                                                  \
    kernel<<<(n + 127) / 128, 128>>>(which, call.data<T>(0), call.data<T>(last - 1), call.data<T>(last), n); \
  }

static int index_of(const std::vector<std::string>& names, const Call& call) {
  const std::string name(call.numbers.begin(), call.numbers.end());
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return int(i);
  throw std::runtime_error("this file has no function " + name);
}

CASE_OF_FUNCTIONS(unary_float, float, UNARY_FLOAT, UNARY)
CASE_OF_FUNCTIONS(unary_double, double, UNARY_DOUBLE, UNARY)
CASE_OF_FUNCTIONS(binary_float, float, BINARY_FLOAT, BINARY)
CASE_OF_FUNCTIONS(binary_double, double, BINARY_DOUBLE, BINARY)

// ------------------------------------------------------------------------------------------------------------------
// Functions of another form

// Rows: sincosf (2), sincospif (2), modff (2), frexpf (2), ldexpf, scalbnf, fmaf, norm3df, __sincosf (2).
__global__ void forms_kernel(const float* x, float* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  float sine, cosine, sine_pi, cosine_pi, sine_fast, cosine_fast, whole;
  int exponent;
  sincosf(x[i], &sine, &cosine);
  sincospif(x[i], &sine_pi, &cosine_pi);
  __sincosf(x[i], &sine_fast, &cosine_fast);
  const float fraction = modff(x[i], &whole), mantissa = frexpf(x[i], &exponent);
  float rows[14];
  store_all(rows, sine, cosine, sine_pi, cosine_pi, fraction, whole, mantissa, exponent, ldexpf(x[i], 3),
            scalbnf(x[i], -2), fmaf(x[i], x[i], -1.0f), norm3df(x[i], 2.0f, 3.0f), sine_fast, cosine_fast);
  for (int k = 0; k < 14; ++k) out[k * n + i] = rows[k];
}

CASE(forms) { forms_kernel<<<1, 64>>>(call.data<float>(0), call.data<float>(1), call.size(0)); }

// Classification and rounding to integers, a row of 12 per value.
__global__ void classify_kernel(const float* x, int* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  store_all(out + 12 * i, isnan(v) != 0, isinf(v) != 0, isfinite(v) != 0, signbit(v) != 0, v == CUDART_INF_F,
            v == -INFINITY, __float_as_int(v), __float_as_uint(__int_as_float(__float_as_int(v) ^ INT_MIN)),
            __float2int_rn(v), __float2int_rz(v), __float2int_rd(v), __float2int_ru(v));
}

CASE(classify) { classify_kernel<<<1, 32>>>(call.data<float>(0), call.data<int>(1), call.size(0)); }

// ------------------------------------------------------------------------------------------------------------------
// Overloads of C++'s names, and constants

__global__ void overloads_kernel(double* out, int s, int t, unsigned x, unsigned y, unsigned long long w) {
  store_all(out, abs(s), min(s, t), max(s, t), min(x, y), max(x, y), max(w % (1ull << 40), 5ull), min(-3ll, 4ll),
            max(-1, 1u), max(1.0f, 2.0), __ll2float_rn(1ll << 40), __int2double_rn(-9), CUDART_PI, CUDART_INF_F,
            1.0 / 3.0 == __ddiv_rn(1.0, 3.0));
}

CASE(overloads) { overloads_kernel<<<1, 1>>>(call.data<double>(0), -70000, 81234, 3, 7, 0x0123456789abcdefull); }
