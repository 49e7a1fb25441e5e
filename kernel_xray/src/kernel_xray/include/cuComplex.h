// cuComplex.h: replaces CUDA's header of this name: complex numbers as float2 and double2, and functions on them.
//
// Quotients are scaled so that no intermediate result overflows where the quotient does not. Absolute values are hypot's,
// so they can differ from a GPU's in the last bit.
#pragma once

#include <math.h>

#include "vector_types.h"

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

// The functions on the complex type C of real numbers T, whose names end in `f` for float.
#define SIMT_COMPLEX(T, C, make, f)                                                                                    \
  inline C make(T real, T imaginary) { return {real, imaginary}; }                                                     \
  inline T cuCreal##f(C x) { return x.x; }                                                                             \
  inline T cuCimag##f(C x) { return x.y; }                                                                             \
  inline T cuCabs##f(C x) { return hypot##f(x.x, x.y); }                                                               \
  inline C cuConj##f(C x) { return {x.x, -x.y}; }                                                                      \
  inline C cuCadd##f(C x, C y) { return {x.x + y.x, x.y + y.y}; }                                                      \
  inline C cuCsub##f(C x, C y) { return {x.x - y.x, x.y - y.y}; }                                                      \
  inline C cuCmul##f(C x, C y) { return {x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x}; }                              \
  inline C cuCfma##f(C x, C y, C z) { return cuCadd##f({x.x * y.x + z.x, x.x * y.y + z.y}, {-x.y * y.y, x.y * y.x}); } \
  inline C cuCdiv##f(C x, C y) {                                                                                       \
    const T scale = 1 / (fabs##f(y.x) + fabs##f(y.y));                                                                 \
    const C a{x.x * scale, x.y * scale}, b{y.x * scale, y.y * scale};                                                  \
    const C product = cuCmul##f(a, cuConj##f(b));                                                                      \
    const T inverse = 1 / (b.x * b.x + b.y * b.y);                                                                     \
    return {product.x * inverse, product.y * inverse};                                                                 \
  }
SIMT_COMPLEX(float, cuFloatComplex, make_cuFloatComplex, f)
SIMT_COMPLEX(double, cuDoubleComplex, make_cuDoubleComplex, )
#undef SIMT_COMPLEX

inline cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) { return {x.x, x.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
