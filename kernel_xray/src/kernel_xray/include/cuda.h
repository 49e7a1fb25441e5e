// cuda.h: of the driver interface, what programs need beside tensor maps: results with their names, the version, the
// devices and their primary contexts. Its other functions, which load and launch kernels that are compiled to PTX or
// machine code, are refused when they are called: many a program includes helpers that call them and calls no helper. The
// simulator has the run-time interface (cuda_runtime.h). __cuda_cuda_h__ is not defined: what code hides behind it calls
// these functions.
#pragma once

#include "cuda_runtime.h"
#include "simt/runtime_refused.h"
#include "simt/tensor_map.h"

#define CUDA_VERSION 13000

struct CUevent_st;
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = CUctx_st*;
using CUmodule = CUmod_st*;
using CUfunction = CUfunc_st*;
using CUstream = CUstream_st*;
using CUevent = CUevent_st*;
// The run-time interface has the same numbers.
#define SIMT_DRIVER_RESULTS(result)                                                                                  \
  result(CUDA_SUCCESS, 0) result(CUDA_ERROR_INVALID_VALUE, 1) result(CUDA_ERROR_OUT_OF_MEMORY, 2)                    \
      result(CUDA_ERROR_NOT_INITIALIZED, 3) result(CUDA_ERROR_NO_DEVICE, 100) result(CUDA_ERROR_INVALID_DEVICE, 101) \
          result(CUDA_ERROR_INVALID_CONTEXT, 201) result(CUDA_ERROR_INVALID_HANDLE, 400)                             \
              result(CUDA_ERROR_NOT_FOUND, 500) result(CUDA_ERROR_NOT_READY, 600)                                    \
                  result(CUDA_ERROR_ILLEGAL_ADDRESS, 700) result(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                     \
                      result(CUDA_ERROR_MISALIGNED_ADDRESS, 716) result(CUDA_ERROR_LAUNCH_FAILED, 719)               \
                          result(CUDA_ERROR_NOT_PERMITTED, 800) result(CUDA_ERROR_NOT_SUPPORTED, 801)                \
                              result(CUDA_ERROR_UNKNOWN, 999)
enum cudaError_enum {
#define SIMT_ENUMERATOR(name, value) name = value,
  SIMT_DRIVER_RESULTS(SIMT_ENUMERATOR)
#undef SIMT_ENUMERATOR
};
using CUresult = cudaError_enum;
using CUlaunchAttribute = cudaLaunchAttribute;

#include "simt/driver_devices.h"
#include "simt/driver_memory.h"

#define SIMT_REFUSED_DRIVER(name) \
  SIMT_REFUSED_CALL(CUresult, name, "the driver interface (names in cu...); use the run-time interface (cuda...)")

inline CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
inline CUresult cuProfilerStart() { return CUDA_SUCCESS; }  // nothing profiles
inline CUresult cuProfilerStop() { return CUDA_SUCCESS; }
inline CUresult cuGetErrorName(CUresult result, const char** name) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = nullptr;
#define SIMT_NAMED(known, value) \
  if (result == known) *name = #known;
  SIMT_DRIVER_RESULTS(SIMT_NAMED)
#undef SIMT_NAMED
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
inline CUresult cuGetErrorString(CUresult result, const char** text) {
  if (cuGetErrorName(result, text)) return CUDA_ERROR_INVALID_VALUE;
  *text = cudaGetErrorString(static_cast<cudaError_t>(result));
  return CUDA_SUCCESS;
}
inline CUresult cuDriverGetVersion(int* version) { return static_cast<CUresult>(cudaDriverGetVersion(version)); }

SIMT_REFUSED_DRIVER(cuCtxCreate)
SIMT_REFUSED_DRIVER(cuCtxDestroy)
SIMT_REFUSED_DRIVER(cuModuleLoad)
SIMT_REFUSED_DRIVER(cuModuleLoadData)
SIMT_REFUSED_DRIVER(cuModuleLoadDataEx)
SIMT_REFUSED_DRIVER(cuModuleGetFunction)
SIMT_REFUSED_DRIVER(cuModuleGetGlobal)
SIMT_REFUSED_DRIVER(cuModuleUnload)
SIMT_REFUSED_DRIVER(cuLaunchKernel)
SIMT_REFUSED_DRIVER(cuMemAlloc)
SIMT_REFUSED_DRIVER(cuMemFree)
SIMT_REFUSED_DRIVER(cuMemcpyHtoD)
SIMT_REFUSED_DRIVER(cuMemcpyDtoH)
SIMT_REFUSED_DRIVER(cuPointerGetAttribute)

SIMT_API CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t dimensions, void* data,
                                         const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                         const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                         CUtensorMapFloatOOBfill fill);
