// runtime_graphs.h: CUDA graphs: capture of streams, nodes, and launches. Included by runtime_api.h.
//
// A graph is a list of nodes with their dependencies. cudaGraphInstantiate sorts it, and cudaGraphLaunch runs the nodes
// one after another, all of them before it returns. What a capture records is checked when the graph runs, except for
// the configuration of launches. Error codes of calls that a capture forbids are those seen on an H200.
//
// Limits: no nodes that allocate memory (so no cudaMallocAsync during a capture), no conditional nodes, no device-side
// launches of graphs, no queries of a node's parameters.
#pragma once

#include <cstring>

#include "runtime_launch.h"
#include "runtime_textures.h"

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

enum cudaGraphNodeType {
  cudaGraphNodeTypeKernel = 0,
  cudaGraphNodeTypeMemcpy = 1,
  cudaGraphNodeTypeMemset = 2,
  cudaGraphNodeTypeHost = 3,
  cudaGraphNodeTypeGraph = 4,
  cudaGraphNodeTypeEmpty = 5,
  cudaGraphNodeTypeWaitEvent = 6,
  cudaGraphNodeTypeEventRecord = 7,
};

enum cudaGraphInstantiateFlags {
  cudaGraphInstantiateFlagAutoFreeOnLaunch = 1,
  cudaGraphInstantiateFlagUpload = 2,
  cudaGraphInstantiateFlagDeviceLaunch = 4,
  cudaGraphInstantiateFlagUseNodePriority = 8,
};

enum cudaGraphExecUpdateResult {
  cudaGraphExecUpdateSuccess = 0,
  cudaGraphExecUpdateError = 1,
  cudaGraphExecUpdateErrorTopologyChanged = 2,
  cudaGraphExecUpdateErrorNodeTypeChanged = 3,
};

struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
};

struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;  // must be null
};

struct cudaMemsetParams {
  void* dst;
  size_t pitch;  // bytes
  unsigned value, elementSize;
  size_t width, height;  // elements, rows
};

struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void* userData;
};

namespace simt::detail {
struct KernelNodeAt {  // a node's parameters, and the place in the source that gives them
  const cudaKernelNodeParams* parameters;
  const char* file;
  int line;
  KernelNodeAt(const cudaKernelNodeParams* parameters_, const char* file_ = __builtin_FILE(),
               int line_ = __builtin_LINE())
      : parameters(parameters_), file(file_), line(line_) {}
};
}  // namespace simt::detail

// ---------------------------------------------------------------------------------------------------------------
// Capture

SIMT_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
SIMT_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
SIMT_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
SIMT_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                              unsigned long long* id = nullptr, cudaGraph_t* graph = nullptr);
SIMT_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);

// ---------------------------------------------------------------------------------------------------------------
// Graphs and their nodes. Lists of nodes: first the pointer, then the number.

SIMT_API cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags);
SIMT_API cudaError_t cudaGraphDestroy(cudaGraph_t graph);
SIMT_API cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph);

// What adds a node of a kind, and what gives it other parameters in its graph, and in an executable.
#define SIMT_NODE(name, suffix, ...)                                                                                \
  SIMT_API cudaError_t cudaGraphAdd##name##Node##suffix(cudaGraphNode_t* node, cudaGraph_t graph,                   \
                                                        const cudaGraphNode_t* after, size_t count, __VA_ARGS__);   \
  SIMT_API cudaError_t cudaGraph##name##NodeSetParams##suffix(cudaGraphNode_t node, __VA_ARGS__);                   \
  SIMT_API cudaError_t cudaGraphExec##name##NodeSetParams##suffix(cudaGraphExec_t executable, cudaGraphNode_t node, \
                                                                  __VA_ARGS__);
SIMT_NODE(Kernel, , simt::detail::KernelNodeAt parameters)
SIMT_NODE(Memcpy, , const cudaMemcpy3DParms* parameters)
SIMT_NODE(Memcpy, 1D, void* to, const void* from, size_t bytes, cudaMemcpyKind kind)
SIMT_NODE(Memset, , const cudaMemsetParams* parameters)
SIMT_NODE(Host, , const cudaHostNodeParams* parameters)
#undef SIMT_NODE

SIMT_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                           size_t count);
SIMT_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                                size_t count, cudaGraph_t child);
SIMT_API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                                 size_t count, cudaEvent_t event);
SIMT_API cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                               size_t count, cudaEvent_t event);
SIMT_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                              size_t count);
SIMT_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                 const cudaGraphNode_t* to, size_t count);
SIMT_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node);

// These give as many as `count` allows and set it to their number; with a null list, the number only.
SIMT_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
SIMT_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
SIMT_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count);
SIMT_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count);
SIMT_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count);
SIMT_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type);

// CUDA 13's forms, with data for each edge. An edge of these kinds of nodes has none but zeros.
struct cudaGraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                            const cudaGraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges && i < count; ++i)
    if (edges[i].from_port || edges[i].to_port || edges[i].type) return cudaErrorNotSupported;
  return cudaGraphAddDependencies(graph, from, to, count);
}
inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, const cudaGraphEdgeData*, size_t count) {
  return cudaGraphRemoveDependencies(graph, from, to, count);
}
inline cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                     cudaGraphEdgeData* edges, size_t* count) {
  if (edges) memset(edges, 0, *count * sizeof *edges);
  return cudaGraphGetEdges(graph, from, to, count);
}
inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                                size_t* count) {
  if (edges) memset(edges, 0, *count * sizeof *edges);
  return cudaGraphNodeGetDependencies(node, nodes, count);
}
inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                  cudaGraphEdgeData* edges, size_t* count) {
  if (edges) memset(edges, 0, *count * sizeof *edges);
  return cudaGraphNodeGetDependentNodes(node, nodes, count);
}

// ---------------------------------------------------------------------------------------------------------------
// Executable graphs

SIMT_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags = 0);
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                 unsigned long long flags = 0) {
  return cudaGraphInstantiate(executable, graph, flags);
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t* error_node,
                                        char* log, size_t log_bytes) {
  if (error_node) *error_node = nullptr;
  if (log && log_bytes) *log = 0;
  return cudaGraphInstantiate(executable, graph, 0ull);
}
SIMT_API cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
SIMT_API cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);  // nothing to upload
SIMT_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
SIMT_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                         cudaGraphExecUpdateResultInfo* info);
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t* error_node,
                                       cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t error = cudaGraphExecUpdate(executable, graph, &info);
  if (error_node) *error_node = info.errorNode;
  if (result) *result = info.result;
  return error;
}
