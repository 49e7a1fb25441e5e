// cuComplex.h: complex numbers as pairs, x + iy: cuFloatComplex is float2 and cuDoubleComplex is double2, as in CUDA.
#pragma once

#include <math.h>

#include "simt/vector_types.h"

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

// The functions for one type; f is the suffix of their names, "f" for float.
#define SIMT_COMPLEX(T, Real, Name, f)                                                     \
  inline T make_cu##Name##Complex(Real x, Real y) { return T{x, y}; }                      \
  inline Real cuCreal##f(T a) { return a.x; }                                              \
  inline Real cuCimag##f(T a) { return a.y; }                                              \
  inline T cuConj##f(T a) { return T{a.x, -a.y}; }                                         \
  inline T cuCadd##f(T a, T b) { return T{a.x + b.x, a.y + b.y}; }                         \
  inline T cuCsub##f(T a, T b) { return T{a.x - b.x, a.y - b.y}; }                         \
  inline T cuCmul##f(T a, T b) { return T{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  inline T cuCdiv##f(T a, T b) { /* scaled, so that no intermediate value overflows */     \
    const Real scale = 1 / (fabs##f(b.x) + fabs##f(b.y));                                  \
    const Real x = b.x * scale, y = b.y * scale, ax = a.x * scale, ay = a.y * scale;       \
    const Real inverse = 1 / (x * x + y * y);                                              \
    return T{(ax * x + ay * y) * inverse, (ay * x - ax * y) * inverse};                    \
  }                                                                                        \
  inline Real cuCabs##f(T a) { return hypot##f(a.x, a.y); }                                \
  inline T cuCfma##f(T a, T b, T c) { return cuCadd##f(cuCmul##f(a, b), c); }
SIMT_COMPLEX(cuFloatComplex, float, Float, f)
SIMT_COMPLEX(cuDoubleComplex, double, Double, )
#undef SIMT_COMPLEX

inline cuComplex make_cuComplex(float x, float y) { return make_cuFloatComplex(x, y); }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return make_cuDoubleComplex(a.x, a.y); }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return make_cuFloatComplex(static_cast<float>(a.x), static_cast<float>(a.y));
}
