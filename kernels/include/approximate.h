// approximate.h: 2 to the power of x and 1 / x by the instructions that are made for
// them, for results of 16 bits.
//
//   ex2.approx.ftz   a relative error of at most 2^-22; results below 2^-126 are 0.
//                    exp2f takes two instructions more, for these small results
//   rcp.approx.ftz   within 1 ulp; results below 2^-126 are 0. __fdividef(1, x) takes
//                    four instructions more
#pragma once

namespace ladder {

__device__ inline float exp2_approximate(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

__device__ inline float reciprocal_approximate(float x) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
  return reciprocal;
}

// tanh(x / (2 * log2(e))), within 2^-22.
__device__ inline float tanh_of_log2(float x) {
  return 1 - 2 * reciprocal_approximate(1 + exp2_approximate(x));
}

}  // namespace ladder
