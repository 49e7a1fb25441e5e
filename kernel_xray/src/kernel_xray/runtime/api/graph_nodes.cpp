// graph_nodes.cpp: what the nodes of a graph do: kernels, copies, memsets, host functions, events.
#include "api/graph.h"

#include <cstring>

#include "api/arrays.h"
#include "api/host_call.h"
#include "api/kernels.h"

namespace simt {
namespace {

// An action, or the error of parameters that do not describe one.
struct Made {
  cudaError_t error;
  Action run;
};

Made kernel(const detail::KernelNodeAt& at) {
  const cudaKernelNodeParams* p = at.parameters;
  if (!p) return {cudaErrorInvalidValue, {}};
  if (p->extra) return {cudaErrorNotSupported, {}};
  const cudaLaunchConfig_t config{p->gridDim, p->blockDim, p->sharedMemBytes};
  std::optional<StoredLaunch> launch;
  if (cudaError_t error = prepare_launch({&config, at.file, at.line}, p->func, p->kernelParams, false, launch))
    return {error, {}};
  if (int code = configuration_error(launch->site(), launch->config())) return {static_cast<cudaError_t>(code), {}};
  return {cudaSuccess, [launch = *launch] { return static_cast<cudaError_t>(launch.run()); }};
}

Made memcpy_3d(const cudaMemcpy3DParms* p) {
  if (!p) return {cudaErrorInvalidValue, {}};
  return {cudaSuccess, [copy = *p] { return copy_3d(copy); }};
}

Made memcpy_1d(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (!to || !from || bytes == 0) return {cudaErrorInvalidValue, {}};
  return {cudaSuccess, [=] { return copy_box({to, 0, 0}, {from, 0, 0}, bytes, 1, 1, kind); }};
}

cudaError_t set_elements(const cudaMemsetParams& p) {
  const size_t row = p.width * p.elementSize;
  if (p.height == 0 || row == 0) return cudaSuccess;
  if (!is_usable(p.dst, (p.height - 1) * p.pitch + row)) return cudaErrorInvalidValue;
  for (size_t y = 0; y < p.height; ++y)
    for (size_t x = 0; x < p.width; ++x)
      std::memcpy(static_cast<char*>(p.dst) + y * p.pitch + x * p.elementSize, &p.value, p.elementSize);
  return cudaSuccess;
}

Made memset_2d(const cudaMemsetParams* p) {
  const bool sized = p && (p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4);
  if (!sized || !p->dst || (p->height > 1 && p->pitch < p->width * p->elementSize)) return {cudaErrorInvalidValue, {}};
  return {cudaSuccess, [set = *p] { return set_elements(set); }};
}

Made host(const cudaHostNodeParams* p) {
  if (!p || !p->fn) return {cudaErrorInvalidValue, {}};
  return {cudaSuccess, [call = *p] {
            call.fn(call.userData);
            return cudaSuccess;
          }};
}

cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                cudaGraphNodeType type, const Made& made) {
  if (made.error) return failed(made.error);
  return add_node(find_graph(graph), type, made.run, after, count, node);
}

cudaError_t set(cudaGraphNode_t node, cudaGraphNodeType type, const Made& made) {
  return made.error ? failed(made.error) : set_action(node, type, made.run);
}

cudaError_t set(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraphNodeType type, const Made& made) {
  return made.error ? failed(made.error) : set_action(executable, node, type, made.run);
}

}  // namespace
}  // namespace simt

// What adds a node, and what gives it other parameters in its graph, and in an executable.
#define SIMT_NODE(name, suffix, type, make, parameters, arguments)                                                     \
  cudaError_t cudaGraphAdd##name##Node##suffix(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, \
                                               size_t count, SIMT_OF parameters) {                                     \
    return simt::add(node, graph, after, count, cudaGraphNodeType##type, simt::make arguments);                        \
  }                                                                                                                    \
  cudaError_t cudaGraph##name##NodeSetParams##suffix(cudaGraphNode_t node, SIMT_OF parameters) {                       \
    return simt::set(node, cudaGraphNodeType##type, simt::make arguments);                                             \
  }                                                                                                                    \
  cudaError_t cudaGraphExec##name##NodeSetParams##suffix(cudaGraphExec_t executable, cudaGraphNode_t node,             \
                                                         SIMT_OF parameters) {                                         \
    return simt::set(executable, node, cudaGraphNodeType##type, simt::make arguments);                                 \
  }
#define SIMT_OF(...) __VA_ARGS__
SIMT_NODE(Kernel, , Kernel, kernel, (simt::detail::KernelNodeAt p), (p))
SIMT_NODE(Memcpy, , Memcpy, memcpy_3d, (const cudaMemcpy3DParms* p), (p))
SIMT_NODE(Memcpy, 1D, Memcpy, memcpy_1d, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind),
          (to, from, bytes, kind))
SIMT_NODE(Memset, , Memset, memset_2d, (const cudaMemsetParams* p), (p))
SIMT_NODE(Host, , Host, host, (const cudaHostNodeParams* p), (p))
#undef SIMT_OF
#undef SIMT_NODE

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                  size_t count) {
  return simt::add(node, graph, after, count, cudaGraphNodeTypeEmpty, {cudaSuccess, [] { return cudaSuccess; }});
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                        size_t count, cudaEvent_t event) {
  return simt::add(node, graph, after, count, cudaGraphNodeTypeEventRecord,
                   {cudaSuccess, [=] { return cudaEventRecord(event, cudaStreamPerThread); }});
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                      size_t count, cudaEvent_t event) {
  return simt::add(node, graph, after, count, cudaGraphNodeTypeWaitEvent,
                   {cudaSuccess, [=] { return cudaStreamWaitEvent(cudaStreamPerThread, event); }});
}
