// cuda.h: the driver interface's version and handle types, for code that only names them. Its functions are not
// supported; the simulator has the run-time interface (cuda_runtime.h).
#pragma once
#define __cuda_cuda_h__

#include "cuda_runtime.h"

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
enum CUresult { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_NOT_SUPPORTED = 801 };
