// graph.cpp: graphs: adding and removing nodes and dependencies, and queries.
#include "api/graph.h"

#include <algorithm>
#include <map>

#include "api/devices.h"
#include "api/handles.h"

namespace simt {
namespace {

Handles<GraphPointer>& graphs() { return lasting<Handles<GraphPointer>>(); }
Handles<std::weak_ptr<Graph>>& nodes() { return lasting<Handles<std::weak_ptr<Graph>>>(); }  // the graph of each node

// Gives a list as the queries of the API do.
cudaError_t give(const std::vector<cudaGraphNode_t>& list, cudaGraphNode_t* to, size_t* count) {
  if (!count) return failed(cudaErrorInvalidValue);
  if (to) {
    std::fill(to, to + *count, nullptr);
    *count = std::min(*count, list.size());
    std::copy_n(list.begin(), *count, to);
  } else {
    *count = list.size();
  }
  return cudaSuccess;
}

cudaError_t change_edges(cudaGraph_t handle, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count,
                         bool add) {
  const GraphPointer graph = find_graph(handle);
  if (!graph || (count && (!from || !to))) return failed(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    Node* node = graph->find(to[i]);
    if (!node || !graph->find(from[i]) || from[i] == to[i]) return failed(cudaErrorInvalidValue);
    const auto known = std::find(node->after.begin(), node->after.end(), from[i]);
    if ((known == node->after.end()) != add) return failed(cudaErrorInvalidValue);
    if (add)
      node->after.push_back(from[i]);
    else
      node->after.erase(known);
  }
  return cudaSuccess;
}

}  // namespace

Node* Graph::find(cudaGraphNode_t handle) {
  const auto it = std::find_if(nodes.begin(), nodes.end(), [=](const Node& n) { return n.handle == handle; });
  return it == nodes.end() ? nullptr : &*it;
}

bool Graph::sort(std::vector<Node>& sorted) const {
  std::map<cudaGraphNode_t, size_t> missing;  // dependencies that have not been placed
  for (const Node& node : nodes) missing[node.handle] = node.after.size();
  while (sorted.size() < nodes.size()) {
    const auto next = std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) {
      const auto it = missing.find(n.handle);
      return it != missing.end() && it->second == 0;
    });
    if (next == nodes.end()) return false;
    sorted.push_back(*next);
    missing.erase(next->handle);
    for (const Node& node : nodes)
      if (std::count(node.after.begin(), node.after.end(), next->handle)) --missing[node.handle];
  }
  return true;
}

GraphPointer find_graph(cudaGraph_t handle) { return graphs().find(handle); }

cudaGraph_t new_graph() {
  cudaGraph_t handle;
  graphs().add(&handle, std::make_shared<Graph>());
  return handle;
}

cudaError_t add_node(const GraphPointer& graph, cudaGraphNodeType type, Action run, const cudaGraphNode_t* after,
                     size_t count, cudaGraphNode_t* node) {
  if (!graph || !node || (count && !after)) return failed(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; ++i)
    if (!graph->find(after[i]) || std::count(after, after + i, after[i])) return failed(cudaErrorInvalidValue);
  nodes().add(node, graph);
  graph->nodes.push_back({*node, type, on_this_device(std::move(run)), {after, after + count}});
  return cudaSuccess;
}

cudaError_t set_action(cudaGraphNode_t handle, cudaGraphNodeType type, Action run) {
  const GraphPointer graph = nodes().find(handle).lock();
  Node* node = graph ? graph->find(handle) : nullptr;
  if (!node || node->type != type) return failed(cudaErrorInvalidValue);
  node->run = on_this_device(std::move(run));
  return cudaSuccess;
}

void forget_graphs() {
  graphs().clear();
  nodes().clear();
  forget_executables();
}

}  // namespace simt

using simt::failed;

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  simt::host_only("cudaGraphCreate");
  if (!graph || flags) return failed(cudaErrorInvalidValue);
  *graph = simt::new_graph();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!simt::find_graph(graph)) return failed(cudaErrorInvalidValue);
  return simt::graphs().remove(graph);
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  const simt::GraphPointer from = simt::find_graph(graph);
  if (!clone || !from) return failed(cudaErrorInvalidValue);
  std::vector<simt::Node> sorted;
  if (!from->sort(sorted)) return failed(cudaErrorInvalidValue);
  *clone = simt::new_graph();
  const simt::GraphPointer to = simt::find_graph(*clone);
  std::map<cudaGraphNode_t, cudaGraphNode_t> names;
  for (simt::Node& node : sorted) {
    for (cudaGraphNode_t& before : node.after) before = names[before];
    simt::add_node(to, node.type, node.run, node.after.data(), node.after.size(), &names[node.handle]);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       size_t count, cudaGraph_t child) {
  const simt::GraphPointer inner = simt::find_graph(child);
  std::vector<simt::Node> sorted;
  if (!inner || child == graph || !inner->sort(sorted)) return failed(cudaErrorInvalidValue);
  return simt::add_node(simt::find_graph(graph), cudaGraphNodeTypeGraph, simt::run_in_order(std::move(sorted)), after,
                        count, node);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     size_t count) {
  return simt::change_edges(graph, from, to, count, true);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        size_t count) {
  return simt::change_edges(graph, from, to, count, false);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  const simt::GraphPointer graph = simt::nodes().find(node).lock();
  if (!graph || !graph->find(node)) return failed(cudaErrorInvalidValue);
  graph->nodes.erase(graph->nodes.begin() + (graph->find(node) - graph->nodes.data()));
  for (simt::Node& other : graph->nodes)
    other.after.erase(std::remove(other.after.begin(), other.after.end(), node), other.after.end());
  return simt::nodes().remove(node);
}

// ---------------------------------------------------------------------------------------------------------------
// Queries

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  const simt::GraphPointer known = simt::find_graph(graph);
  if (!known) return failed(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> all;
  for (const simt::Node& node : known->nodes) all.push_back(node.handle);
  return simt::give(all, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  const simt::GraphPointer known = simt::find_graph(graph);
  if (!known) return failed(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> roots;
  for (const simt::Node& node : known->nodes)
    if (node.after.empty()) roots.push_back(node.handle);
  return simt::give(roots, nodes, count);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  const simt::GraphPointer known = simt::find_graph(graph);
  if (!known || !count || !from != !to) return failed(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> begins, ends;
  for (const simt::Node& node : known->nodes) {
    begins.insert(begins.end(), node.after.begin(), node.after.end());
    ends.resize(begins.size(), node.handle);
  }
  size_t room = *count;
  simt::give(begins, from, &room);
  return simt::give(ends, to, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  const simt::GraphPointer graph = simt::nodes().find(node).lock();
  if (!graph || !graph->find(node)) return failed(cudaErrorInvalidValue);
  return simt::give(graph->find(node)->after, nodes, count);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  const simt::GraphPointer graph = simt::nodes().find(node).lock();
  if (!graph || !graph->find(node)) return failed(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> dependent;
  for (const simt::Node& other : graph->nodes)
    if (std::count(other.after.begin(), other.after.end(), node)) dependent.push_back(other.handle);
  return simt::give(dependent, nodes, count);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  const simt::GraphPointer graph = simt::nodes().find(node).lock();
  if (!type || !graph || !graph->find(node)) return failed(cudaErrorInvalidValue);
  *type = graph->find(node)->type;
  return cudaSuccess;
}
