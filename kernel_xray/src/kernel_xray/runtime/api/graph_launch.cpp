// graph_launch.cpp: executable graphs: making, running and updating them.
#include <algorithm>
#include <map>

#include "api/capture.h"
#include "api/devices.h"
#include "api/handles.h"

namespace simt {
namespace {

using Executable = std::vector<Node>;  // sorted

Handles<std::shared_ptr<Executable>>& executables() { return lasting<Handles<std::shared_ptr<Executable>>>(); }

cudaError_t run(const Executable& sorted) {
  for (const Node& node : sorted)
    if (cudaError_t error = node.run()) return failed(error);
  return cudaSuccess;
}

}  // namespace

Action run_in_order(std::vector<Node> sorted) {
  return [sorted = std::move(sorted)] { return run(sorted); };
}

cudaError_t set_action(cudaGraphExec_t executable, cudaGraphNode_t handle, cudaGraphNodeType type, Action action) {
  const auto sorted = executables().find(executable);
  if (!sorted) return failed(cudaErrorInvalidValue);
  for (Node& node : *sorted) {
    if (node.handle != handle || node.type != type) continue;
    node.run = on_this_device(std::move(action));
    return cudaSuccess;
  }
  return failed(cudaErrorInvalidValue);
}

void forget_executables() { executables().clear(); }

}  // namespace simt

using simt::failed;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  simt::host_only("cudaGraphInstantiate");
  const simt::GraphPointer known = simt::find_graph(graph);
  if (flags & cudaGraphInstantiateFlagDeviceLaunch) return failed(cudaErrorNotSupported);
  auto sorted = std::make_shared<simt::Executable>();
  if (!executable || !known || !known->sort(*sorted)) return failed(cudaErrorInvalidValue);
  simt::executables().add(executable, sorted);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (!simt::executables().find(executable)) return failed(cudaErrorInvalidValue);
  return simt::executables().remove(executable);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (cudaError_t fault = simt::begin_work("cudaGraphLaunch")) return fault;
  const auto sorted = simt::executables().find(executable);
  if (!sorted) return failed(cudaErrorInvalidValue);
  if (!simt::stream_exists(stream)) return simt::no_stream();
  // CUDA 13.0 does not record it as a child graph
  if (const auto refused = simt::refused_by_capture(stream)) return *refused;
  return simt::run(*sorted);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  if (!simt::executables().find(executable)) return failed(cudaErrorInvalidValue);
  return simt::stream_exists(stream) ? cudaSuccess : simt::no_stream();
}

// Nodes are matched by their order; types and dependencies have to be the same.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  const auto sorted = simt::executables().find(executable);
  const simt::GraphPointer known = simt::find_graph(graph);
  simt::Executable updated;
  if (!sorted || !known || !info || !known->sort(updated)) return failed(cudaErrorInvalidValue);
  *info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
  const auto refuse = [&](cudaGraphExecUpdateResult why, cudaGraphNode_t node, cudaGraphNode_t from) {
    *info = {why, node, from};
    return failed(cudaErrorGraphExecUpdateFailure);
  };
  if (updated.size() != sorted->size()) return refuse(cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr);
  std::map<cudaGraphNode_t, cudaGraphNode_t> names;  // in `graph` -> in `executable`
  for (size_t i = 0; i < updated.size(); ++i) {
    const simt::Node &now = (*sorted)[i], &then = updated[i];
    if (now.type != then.type) return refuse(cudaGraphExecUpdateErrorNodeTypeChanged, then.handle, now.handle);
    names[then.handle] = now.handle;
    std::vector<cudaGraphNode_t> renamed, before = now.after;
    for (cudaGraphNode_t node : then.after) renamed.push_back(names[node]);
    std::sort(renamed.begin(), renamed.end());
    std::sort(before.begin(), before.end());
    if (renamed != before) return refuse(cudaGraphExecUpdateErrorTopologyChanged, then.handle, nullptr);
  }
  for (size_t i = 0; i < updated.size(); ++i) (*sorted)[i].run = updated[i].run;
  return cudaSuccess;
}
