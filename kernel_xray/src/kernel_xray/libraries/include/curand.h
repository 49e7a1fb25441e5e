// curand.h: cuRAND's host interface: generators that fill an array with random numbers.
//
// A generator of XORWOW, MRG32k3a or Philox4_32_10 gives the numbers that cuRAND gives for the same seed, offset and
// ordering, if all its calls ask for one kind of number; normal numbers differ in the last places and Poisson numbers
// come in another sequence (curand_kernel.h). Mersenne Twister and quasi-random generators are refused with a fault, and
// so is CURAND_ORDERING_PSEUDO_SEEDED.
#pragma once

#include "library_types.h"
#include "simt/runtime_api.h"

#define CURAND_VERSION 10400

struct curandGenerator_st;
using curandGenerator_t = curandGenerator_st*;

enum curandStatus {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_VERSION_MISMATCH = 100,
  CURAND_STATUS_NOT_INITIALIZED = 101,
  CURAND_STATUS_ALLOCATION_FAILED = 102,
  CURAND_STATUS_TYPE_ERROR = 103,
  CURAND_STATUS_OUT_OF_RANGE = 104,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_PREEXISTING_FAILURE = 202,
  CURAND_STATUS_INITIALIZATION_FAILED = 203,
  CURAND_STATUS_ARCH_MISMATCH = 204,
  CURAND_STATUS_INTERNAL_ERROR = 999,
};
using curandStatus_t = curandStatus;

enum curandRngType {
  CURAND_RNG_PSEUDO_DEFAULT = 100,  // XORWOW
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
  CURAND_RNG_QUASI_DEFAULT = 200,
  CURAND_RNG_QUASI_SOBOL32 = 201,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
  CURAND_RNG_QUASI_SOBOL64 = 203,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204,
};
using curandRngType_t = curandRngType;

enum curandOrdering {
  CURAND_ORDERING_PSEUDO_BEST = 100,
  CURAND_ORDERING_PSEUDO_DEFAULT = 101,
  CURAND_ORDERING_PSEUDO_SEEDED = 102,
  CURAND_ORDERING_PSEUDO_LEGACY = 103,
  CURAND_ORDERING_PSEUDO_DYNAMIC = 104,
  CURAND_ORDERING_QUASI_DEFAULT = 201,
};
using curandOrdering_t = curandOrdering;

SIMT_API curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type);
SIMT_API curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type);
SIMT_API curandStatus_t curandDestroyGenerator(curandGenerator_t generator);
SIMT_API curandStatus_t curandGetVersion(int* version);
SIMT_API curandStatus_t curandGetProperty(libraryPropertyType type, int* value);
SIMT_API curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream);
SIMT_API curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed);
SIMT_API curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset);
SIMT_API curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order);
SIMT_API curandStatus_t curandGenerateSeeds(curandGenerator_t generator);

// `count` numbers into `out`. Pairs of normal numbers are drawn together: XORWOW and MRG32k3a ask for an even count.
SIMT_API curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* out, size_t count);
SIMT_API curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* out, size_t count);
SIMT_API curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* out, size_t count);
SIMT_API curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* out, size_t count);
SIMT_API curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* out, size_t count, float mean,
                                             float stddev);
SIMT_API curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* out, size_t count, double mean,
                                                   double stddev);
SIMT_API curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* out, size_t count, float mean,
                                                float stddev);
SIMT_API curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* out, size_t count,
                                                      double mean, double stddev);
SIMT_API curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* out, size_t count, double lambda);
