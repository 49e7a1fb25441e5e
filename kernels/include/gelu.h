// gelu.h: GELU in its tanh form, and its slope, for kernels that compute in float or
// double.
//
//   gelu(z)  = z * s(z)    with s = (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)),    u =
//   sqrt(2/pi) * (z + 0.044715 z^3) gelu'(z) = s + z * s * (1 - s) * 2u'
//
// One of three functions computes s. It is chosen at compile time, for example with
// -DLADDER_SIGMOID=sigmoid_by_tanhf. On a GPU tanhf takes about 20 instructions and a
// branch; exp2f takes little more than one, and so does __tanhf, the hardware's tanh.
// The difference matters: at 4.3 TB/s an H200 has about 31 instruction slots per
// bfloat16 element.
#pragma once

#include <cmath>

#include "approximate.h"
#include "floating.h"

#ifndef LADDER_SIGMOID
#define LADDER_SIGMOID sigmoid_by_exp2
#endif

namespace ladder {

// s, and its slope s * (1 - s) with respect to 2u. W is float or double.
template <typename W>
struct Sigmoid {
  W value, slope;
};

template <typename W>
struct Gelu {
  // 2 * sqrt(2/pi): 2u = kLinear * z + kCubic * z^3.
  static constexpr W kLinear = W(1.5957691216057308);
  static constexpr W kCubic = W(0.07135481627260025);  // kLinear * 0.044715
  static constexpr W kLog2E = W(1.4426950408889634);   // exp(x) = 2^(x * log2(e))
};

// Within 2 ulp; an exact division takes about 8 instructions more.
__device__ inline float reciprocal(float x) { return __fdividef(1.0f, x); }
__device__ inline double reciprocal(double x) { return 1 / x; }

// e = exp(-2|u|) is at most 1, so it cannot overflow. For z < 0 there is no
// subtraction, so s keeps all its digits.
template <typename W>
__device__ Sigmoid<W> sigmoid_by_exp2(W z) {
  constexpr W linear = -Gelu<W>::kLinear * Gelu<W>::kLog2E,
              cubic = -Gelu<W>::kCubic * Gelu<W>::kLog2E;
  W e = exp2(fabs(z) * (linear + cubic * z * z));
  W r = reciprocal(1 + e);
  return {z < 0 ? e * r : r, e * r * r};
}

// For large negative z, 1 + tanh(u) is the small difference of two numbers near 1: most
// of its digits are lost.
template <typename W>
__device__ Sigmoid<W> sigmoid_by_tanhf(W z) {
  W t = tanh(z * (Gelu<W>::kLinear / 2 + Gelu<W>::kCubic / 2 * z * z));
  return {(1 + t) / 2, (1 - t * t) / 4};
}

// One instruction, with a relative error of up to 2^-11.
template <typename W>
__device__ Sigmoid<W> sigmoid_by_tanh_approx(W z) {
  float t = __tanhf(float(z * (Gelu<W>::kLinear / 2 + Gelu<W>::kCubic / 2 * z * z)));
  return {W(1 + t) / 2, W(1 - t * t) / 4};
}

template <typename W>
__device__ W gelu_tanh(W z) {
  return z * LADDER_SIGMOID(z).value;
}

// For results of 16 bits: 9 instructions instead of about 20, with a relative error of
// about 2^-20. For z < 0, 1 + exp(-2u) may be infinite; its reciprocal is 0 then, as it
// should be.
__device__ inline float gelu_tanh_approximate(float z) {
  constexpr float linear = -Gelu<float>::kLinear * Gelu<float>::kLog2E;
  constexpr float cubic = -Gelu<float>::kCubic * Gelu<float>::kLog2E;
  return z * reciprocal_approximate(1 + exp2_approximate(z * (linear + cubic * z * z)));
}

// For |z| >= 40 the slope of s is 0 in every dtype. The bound on z^2 keeps the other
// factor finite: for large z it would be infinite, and 0 * infinity is NaN.
template <typename W>
__device__ W gelu_tanh_slope(W z) {
  Sigmoid<W> s = LADDER_SIGMOID(z);
  return s.value +
         z * s.slope * (Gelu<W>::kLinear + 3 * Gelu<W>::kCubic * fmin(z * z, W(1e4)));
}

}  // namespace ladder
