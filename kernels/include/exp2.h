// exp2.h: 2 to the power of x by the instruction that is made for it, for results of 16 bits.
//
// ex2.approx.ftz: a relative error of at most 2^-22; results below 2^-126 are 0. exp2f takes two instructions more, for
// these small results.
#pragma once

namespace ladder {

__device__ inline float exp2_approximate(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

}  // namespace ladder
