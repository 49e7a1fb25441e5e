// cuda.h: the driver interface's version, handle types and results, for code that only names them, and tensor maps. Its
// other functions are refused: most programs that use them load kernels that are compiled to PTX or machine code. The
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
enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_UNKNOWN = 999,
};
using CUresult = cudaError_enum;
using CUlaunchAttribute = cudaLaunchAttribute;

#define SIMT_REFUSED_DRIVER(name)                                                                            \
  template <typename... Arguments>                                                                           \
  SIMT_REFUSED("the driver interface (functions with names in cu...); use the run-time interface (cuda...)") \
  CUresult name(const Arguments&...);

SIMT_REFUSED_DRIVER(cuInit)
SIMT_REFUSED_DRIVER(cuGetErrorName)
SIMT_REFUSED_DRIVER(cuGetErrorString)
SIMT_REFUSED_DRIVER(cuDriverGetVersion)
SIMT_REFUSED_DRIVER(cuDeviceGet)
SIMT_REFUSED_DRIVER(cuDeviceGetCount)
SIMT_REFUSED_DRIVER(cuDeviceGetName)
SIMT_REFUSED_DRIVER(cuDeviceGetAttribute)
SIMT_REFUSED_DRIVER(cuDeviceTotalMem)
SIMT_REFUSED_DRIVER(cuDevicePrimaryCtxRetain)
SIMT_REFUSED_DRIVER(cuCtxCreate)
SIMT_REFUSED_DRIVER(cuCtxDestroy)
SIMT_REFUSED_DRIVER(cuCtxGetCurrent)
SIMT_REFUSED_DRIVER(cuCtxSetCurrent)
SIMT_REFUSED_DRIVER(cuCtxSynchronize)
SIMT_REFUSED_DRIVER(cuModuleLoad)
SIMT_REFUSED_DRIVER(cuModuleLoadData)
SIMT_REFUSED_DRIVER(cuModuleLoadDataEx)
SIMT_REFUSED_DRIVER(cuModuleGetFunction)
SIMT_REFUSED_DRIVER(cuModuleGetGlobal)
SIMT_REFUSED_DRIVER(cuModuleUnload)
SIMT_REFUSED_DRIVER(cuLaunchKernel)
SIMT_REFUSED_DRIVER(cuMemAlloc)
SIMT_REFUSED_DRIVER(cuMemFree)
SIMT_REFUSED_DRIVER(cuMemGetInfo)
SIMT_REFUSED_DRIVER(cuMemcpyHtoD)
SIMT_REFUSED_DRIVER(cuMemcpyDtoH)
SIMT_REFUSED_DRIVER(cuMemGetAddressRange)
SIMT_REFUSED_DRIVER(cuMemCreate)
SIMT_REFUSED_DRIVER(cuMemMap)
SIMT_REFUSED_DRIVER(cuMemAddressReserve)
SIMT_REFUSED_DRIVER(cuPointerGetAttribute)

SIMT_API CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t dimensions, void* data,
                                         const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                         const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                         CUtensorMapFloatOOBfill fill);
