// runtime_refused.h: parts of the run-time API that the simulator does not have, declared so that using one is a
// compile error whose message is a sentence. g++ before 12 reports a refused type as incomplete, without the sentence.
// Included by runtime_api.h.
#pragma once

#include "runtime_types.h"

#if defined(__has_attribute)
#if __has_attribute(unavailable)
#define SIMT_REFUSED(reason) __attribute__((unavailable("not supported by the simulator: " reason)))
#define SIMT_REFUSED_TYPE(name, reason) \
  struct SIMT_REFUSED(reason) name {}
#endif
#endif
#ifndef SIMT_REFUSED  // g++ before 12
#define SIMT_REFUSED(reason) __attribute__((error("not supported by the simulator: " reason)))
#define SIMT_REFUSED_TYPE(name, reason) struct name  // incomplete, which is an error without the sentence
#endif
#define SIMT_REFUSED_FUNCTION(name, reason) \
  template <typename... Arguments>          \
  SIMT_REFUSED(reason)                      \
  cudaError_t name(const Arguments&...);

#define SIMT_NO_NODE "this kind of node in a CUDA graph"
SIMT_REFUSED_FUNCTION(cudaGraphAddNode, "cudaGraphAddNode; use cudaGraphAddKernelNode and its relatives")
SIMT_REFUSED_FUNCTION(cudaGraphAddMemAllocNode, SIMT_NO_NODE "; allocate before the graph begins")
SIMT_REFUSED_FUNCTION(cudaGraphAddMemFreeNode, SIMT_NO_NODE "; free after the graph has run")
SIMT_REFUSED_FUNCTION(cudaGraphConditionalHandleCreate, SIMT_NO_NODE "; decide between two graphs in host code")
SIMT_REFUSED_FUNCTION(cudaGraphAddMemcpyNodeToSymbol, SIMT_NO_NODE "; copy to the address of cudaGetSymbolAddress")
SIMT_REFUSED_FUNCTION(cudaGraphAddMemcpyNodeFromSymbol, SIMT_NO_NODE "; copy from the address of cudaGetSymbolAddress")
SIMT_REFUSED_FUNCTION(cudaGraphKernelNodeGetParams, "reading a node's parameters; keep those that it was made with")
SIMT_REFUSED_FUNCTION(cudaGraphMemcpyNodeGetParams, "reading a node's parameters; keep those that it was made with")
SIMT_REFUSED_FUNCTION(cudaGraphMemsetNodeGetParams, "reading a node's parameters; keep those that it was made with")
SIMT_REFUSED_FUNCTION(cudaGraphHostNodeGetParams, "reading a node's parameters; keep those that it was made with")
SIMT_REFUSED_FUNCTION(cudaGraphDebugDotPrint, "a drawing of a graph; cudaGraphGetEdges gives its edges")
SIMT_REFUSED_FUNCTION(cudaStreamBeginCaptureToGraph, "a capture into a graph that exists; capture, then add the nodes")
SIMT_REFUSED_FUNCTION(cudaStreamUpdateCaptureDependencies, "changing a capture; let streams wait for events")

#define SIMT_NO_REFERENCE "texture references, which CUDA 12 removed; create a texture object"
SIMT_REFUSED_FUNCTION(cudaBindTexture, SIMT_NO_REFERENCE)
SIMT_REFUSED_FUNCTION(cudaBindTexture2D, SIMT_NO_REFERENCE)
SIMT_REFUSED_FUNCTION(cudaBindTextureToArray, SIMT_NO_REFERENCE)
SIMT_REFUSED_FUNCTION(cudaUnbindTexture, SIMT_NO_REFERENCE)
SIMT_REFUSED_FUNCTION(cudaGetTextureReference, SIMT_NO_REFERENCE)
SIMT_REFUSED_FUNCTION(cudaBindSurfaceToArray, SIMT_NO_REFERENCE)
SIMT_REFUSED_FUNCTION(cudaMallocMipmappedArray, "mipmaps; make an array for each level")
SIMT_REFUSED_FUNCTION(cudaGetMipmappedArrayLevel, "mipmaps; make an array for each level")

// What code of one process and one device only names is refused when it is called: the call says so and fails.
namespace simt {
SIMT_API void refuse_call(const char* name, const char* reason);
}
#define SIMT_REFUSED_CALL(Result, name, reason)        \
  template <typename... Arguments>                     \
  inline Result name(const Arguments&...) {            \
    ::simt::refuse_call(#name, reason);                \
    return static_cast<Result>(cudaErrorNotSupported); \
  }

#define cudaIpcMemLazyEnablePeerAccess 0x01
struct cudaIpcMemHandle_t {
  char reserved[64];
};
struct cudaIpcEventHandle_t {
  char reserved[64];
};
SIMT_REFUSED_CALL(cudaError_t, cudaIpcGetMemHandle, "memory shared between processes")
SIMT_REFUSED_CALL(cudaError_t, cudaIpcOpenMemHandle, "memory shared between processes")
SIMT_REFUSED_CALL(cudaError_t, cudaIpcCloseMemHandle, "memory shared between processes")
SIMT_REFUSED_CALL(cudaError_t, cudaIpcGetEventHandle, "events shared between processes")
SIMT_REFUSED_CALL(cudaError_t, cudaIpcOpenEventHandle, "events shared between processes")
