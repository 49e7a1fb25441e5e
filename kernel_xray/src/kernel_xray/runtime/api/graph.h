// graph.h: what is behind a cudaGraph_t and a cudaGraphExec_t.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "../../include/simt/runtime_api.h"

namespace simt {

using Action = std::function<cudaError_t()>;

struct Node {
  cudaGraphNode_t handle;
  cudaGraphNodeType type;
  Action run;
  std::vector<cudaGraphNode_t> after;  // the nodes that it depends on
};

struct Graph {
  std::vector<Node> nodes;  // in the order in which they were added

  Node* find(cudaGraphNode_t handle);
  bool sort(std::vector<Node>& sorted) const;  // an order in which they can run; false: there is a cycle
};
using GraphPointer = std::shared_ptr<Graph>;

GraphPointer find_graph(cudaGraph_t handle);  // null if there is none
cudaGraph_t new_graph();
// Adds a node after others of the same graph, and gives it a handle.
cudaError_t add_node(const GraphPointer& graph, cudaGraphNodeType type, Action run, const cudaGraphNode_t* after,
                     size_t count, cudaGraphNode_t* node);
cudaError_t set_action(cudaGraphNode_t node, cudaGraphNodeType type, Action run);
cudaError_t set_action(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraphNodeType type, Action run);
Action run_in_order(std::vector<Node> sorted);
void forget_graphs();  // cudaDeviceReset
void forget_executables();

}  // namespace simt
