// runtime_refused.h: parts of the run-time API that the simulator does not have, declared so that using one is a
// compile error whose message is a sentence. g++ before 12 reports a refused type as incomplete, without the sentence.
// Included by runtime_api.h.
#pragma once

#include "runtime_types.h"

#if defined(__has_attribute)
#if __has_attribute(unavailable)
#define SIMT_REFUSED(reason) __attribute__((unavailable("not supported by the simulator: " reason)))
#define SIMT_REFUSED_TYPE(reason) SIMT_REFUSED(reason)
#endif
#endif
#ifndef SIMT_REFUSED  // g++ before 12
#define SIMT_REFUSED(reason) __attribute__((error("not supported by the simulator: " reason)))
#define SIMT_REFUSED_TYPE(reason)  // incomplete, which is an error without the sentence
#endif
#define SIMT_REFUSED_FUNCTION(name, reason) \
  template <typename... Arguments>          \
  SIMT_REFUSED(reason)                      \
  cudaError_t name(const Arguments&...);

struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;
using cudaGraphNode_t = CUgraphNode_st*;
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;

#define SIMT_NO_GRAPH "CUDA graphs; launch the kernels one by one"
SIMT_REFUSED_FUNCTION(cudaStreamBeginCapture, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaStreamEndCapture, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaGraphCreate, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaGraphAddKernelNode, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaGraphInstantiate, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaGraphInstantiateWithFlags, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaGraphLaunch, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaGraphUpload, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaGraphDestroy, SIMT_NO_GRAPH)
SIMT_REFUSED_FUNCTION(cudaGraphExecDestroy, SIMT_NO_GRAPH)

#define SIMT_NO_TEXTURE "textures, surfaces and CUDA arrays; read from global memory through a pointer instead"
struct SIMT_REFUSED_TYPE(SIMT_NO_TEXTURE) cudaArray;
struct SIMT_REFUSED_TYPE(SIMT_NO_TEXTURE) cudaResourceDesc;
struct SIMT_REFUSED_TYPE(SIMT_NO_TEXTURE) cudaTextureDesc;
struct SIMT_REFUSED_TYPE(SIMT_NO_TEXTURE) cudaChannelFormatDesc;
struct SIMT_REFUSED_TYPE(SIMT_NO_TEXTURE) cudaExtent;
struct SIMT_REFUSED_TYPE(SIMT_NO_TEXTURE) cudaMemcpy3DParms;
SIMT_REFUSED_FUNCTION(cudaCreateTextureObject, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaDestroyTextureObject, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaCreateSurfaceObject, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaDestroySurfaceObject, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaMallocArray, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaFreeArray, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaMemcpyToArray, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaMemcpy2DToArray, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaMalloc3D, SIMT_NO_TEXTURE)
SIMT_REFUSED_FUNCTION(cudaMemcpy3D, SIMT_NO_TEXTURE)

#define SIMT_ONE_DEVICE "there is one device"
SIMT_REFUSED_FUNCTION(cudaDeviceEnablePeerAccess, SIMT_ONE_DEVICE)
SIMT_REFUSED_FUNCTION(cudaDeviceDisablePeerAccess, SIMT_ONE_DEVICE)
SIMT_REFUSED_FUNCTION(cudaIpcGetMemHandle, "memory shared between processes")
SIMT_REFUSED_FUNCTION(cudaIpcOpenMemHandle, "memory shared between processes")
SIMT_REFUSED_FUNCTION(cudaIpcGetEventHandle, "events shared between processes")
SIMT_REFUSED_FUNCTION(cudaIpcOpenEventHandle, "events shared between processes")
SIMT_REFUSED_FUNCTION(cudaGetDriverEntryPoint, "the driver interface (functions with names in cu...)")
SIMT_REFUSED_FUNCTION(cudaGetDriverEntryPointByVersion, "the driver interface (functions with names in cu...)")
