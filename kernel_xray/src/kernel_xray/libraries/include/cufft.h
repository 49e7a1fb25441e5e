// cufft.h: cuFFT on the CPU: transforms of one, two and three dimensions, of complex and of real numbers, in batches.
//
// As in cuFFT, transforms are not scaled, the real ones keep the half of the spectrum that determines the other, and
// plans of real transforms in place have their rows padded to 2 (n / 2 + 1) real numbers. Float data is transformed in
// double and rounded once. A call has done its work when it returns. An operand that ends behind its allocation, or that
// is freed or null, raises a fault that names it.
//
// Not there: callbacks and several devices (cufftXt.h), half precision, FFTW's interface (cufftw.h), sizes of 64 bits.
#pragma once

#include "cuComplex.h"
#include "library_types.h"
#include "simt/runtime_api.h"

#define CUFFT_VERSION 12000
#define CUFFT_FORWARD (-1)
#define CUFFT_INVERSE 1

using cufftHandle = int;
using cufftReal = float;
using cufftDoubleReal = double;
using cufftComplex = cuComplex;
using cufftDoubleComplex = cuDoubleComplex;

enum cufftResult_t {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_UNALIGNED_DATA = 9,
  CUFFT_INVALID_DEVICE = 11,
  CUFFT_NO_WORKSPACE = 13,
  CUFFT_NOT_IMPLEMENTED = 14,
  CUFFT_NOT_SUPPORTED = 16,
};
using cufftResult = cufftResult_t;

enum cufftType_t {  // R, C: real and complex of float; D, Z: of double
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_C2C = 0x29,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
  CUFFT_Z2Z = 0x69,
};
using cufftType = cufftType_t;

// Plans. The last dimension varies fastest. Of a batch, transform i begins i * dist elements behind the first, and
// element (x, y, z) of it is ((x * embed[1] + y) * embed[2] + z) * stride elements further; without `embed`, the data is
// contiguous and stride and dist are not looked at.
SIMT_API cufftResult cufftPlan1d(cufftHandle* plan, int nx, cufftType type, int batch);
SIMT_API cufftResult cufftPlan2d(cufftHandle* plan, int nx, int ny, cufftType type);
SIMT_API cufftResult cufftPlan3d(cufftHandle* plan, int nx, int ny, int nz, cufftType type);
SIMT_API cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist,
                                   int* onembed, int ostride, int odist, cufftType type, int batch);
SIMT_API cufftResult cufftCreate(cufftHandle* plan);
SIMT_API cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t* work_bytes);
SIMT_API cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t* work_bytes);
SIMT_API cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t* work_bytes);
SIMT_API cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* n, int* inembed, int istride, int idist,
                                       int* onembed, int ostride, int odist, cufftType type, int batch,
                                       size_t* work_bytes);
SIMT_API cufftResult cufftDestroy(cufftHandle plan);
SIMT_API cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
SIMT_API cufftResult cufftGetSize(cufftHandle plan, size_t* work_bytes);  // 0: no work area is needed
SIMT_API cufftResult cufftSetWorkArea(cufftHandle plan, void* area);
SIMT_API cufftResult cufftSetAutoAllocation(cufftHandle plan, int automatic);
SIMT_API cufftResult cufftGetVersion(int* version);
SIMT_API cufftResult cufftGetProperty(libraryPropertyType type, int* value);

// `in` and `out` may be the same. The direction is CUFFT_FORWARD or CUFFT_INVERSE.
SIMT_API cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction);
SIMT_API cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out);
SIMT_API cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out);
SIMT_API cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction);
SIMT_API cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out);
SIMT_API cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out);
