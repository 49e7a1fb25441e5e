// runtime_api_refused.cpp: code that must not compile. Each marked line must give an error that contains its mark;
// without REFUSED the file must compile.
#include "simt/runtime_api.h"

const float constants[2] = {1, 2};

void calls(void* p) {
  cudaGraph_t graph;
  (void)graph, (void)constants;
#ifdef REFUSED
  cudaGraphAddMemAllocNode(nullptr, graph, nullptr, 0, p);  // expect: allocate before the graph begins
  cudaGraphDebugDotPrint(graph, "a.dot", 0);                // expect: a drawing of a graph
  cudaStreamBeginCaptureToGraph(nullptr, graph);            // expect: a capture into a graph that exists
  cudaBindTexture(nullptr, p, p, 4);                        // expect: create a texture object
  cudaMallocMipmappedArray(nullptr, p, 1, 1);               // expect: mipmaps
#endif
  (void)p;
}
