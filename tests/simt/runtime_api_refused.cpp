// runtime_api_refused.cpp: code that must not compile. Each marked line must give an error that contains its mark;
// without REFUSED the file must compile.
#include "simt/runtime_api.h"

const float constants[2] = {1, 2};

void calls(void* p) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaTextureObject_t texture;
  (void)graph, (void)executable, (void)texture, (void)constants;
#ifdef REFUSED
  cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal);      // expect: CUDA graphs
  cudaGraphInstantiate(&executable, graph, nullptr, nullptr, 0);     // expect: CUDA graphs
  cudaGraphLaunch(executable, nullptr);                              // expect: CUDA graphs
  cudaResourceDesc* description = nullptr;                           // expect: textures
  cudaCreateTextureObject(&texture, nullptr, nullptr, nullptr);      // expect: textures
  cudaMallocArray(nullptr, nullptr, 1, 1);                           // expect: textures
  cudaDeviceEnablePeerAccess(1, 0);                                  // expect: there is one device
  cudaIpcGetMemHandle(nullptr, p);                                   // expect: between processes
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", p, 0, nullptr);  // expect: the driver interface
#endif
  (void)p;
}
