// Launches that do not name a kernel of their file with one size of clusters: each must run in the kernel's own.
#include "clusters.h"

#include <cstdio>

#define LAUNCH(kernel, ...) kernel<<<8, 32>>>(__VA_ARGS__)
#define RUN(kernel) (LAUNCH(kernel, size), told(size))

__global__ void __cluster_dims__(4, 1, 1) four(int* size) { tell(size); }
__global__ void __cluster_dims__(2, 1, 1) overloaded(int* size) { tell(size); }
__global__ void __cluster_dims__(4, 1, 1) overloaded(int* size, int) { tell(size); }
template <int N>
__global__ void __launch_bounds__(32) __cluster_dims__(N, 1, 1) sized(int* size) {
  tell(size);
}
#ifdef __CUDACC__
#define EIGHT __cluster_dims__(8, 1, 1)
#else
#define EIGHT
#endif
#if defined(NOWHERE)
#define NONE __launch_bounds__(32) __cluster_dims__(8, 1, 1)
#else
#define NONE  // no clusters
#endif
__global__ void EIGHT in_a_branch(int* size) { tell(size); }
__global__ void NONE in_no_branch(int* size);
__global__ void NONE in_no_branch(int* size) { tell(size); }
__global__ void none(int* size) { tell(size); }

void told(const int* size) {
  cudaDeviceSynchronize();
  printf("%d ", *size);
}
template <typename Kernel>
void by_pointer(Kernel kernel, int* size) {
  kernel<<<8, 32>>>(size);
  told(size);
}

template <typename Kernel>
void by_pointer_in(cudaStream_t stream, Kernel kernel, int blocks) {
  kernel<<<blocks, 32, 0, stream>>>(nullptr);
}

int main() {
  int* size;
  cudaMallocManaged(&size, sizeof(int));
  of_a_header<<<8, 32>>>(size), told(size);
  RUN(of_a_header), RUN(four), RUN(sized<8>), RUN(none);
  by_pointer(four, size), by_pointer(sized<2>, size), by_pointer(none, size);
  in_a_branch<<<8, 32>>>(size), told(size);
  in_no_branch<<<8, 32>>>(size), told(size);
  overloaded<<<8, 32>>>(size), told(size);
  overloaded<<<8, 32>>>(size, 0), told(size);

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t work;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  auto kernel = sized<4>;
  (*kernel)<<<8, 32, 0, stream>>>(size);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&work, graph, 0);
  cudaGraphLaunch(work, stream), told(size);

  auto fits_not = [](auto launched) { launched<<<3, 32>>>(nullptr); };
  fits_not(four);
  printf("%s", cudaGetErrorName(cudaGetLastError()));

  // A launch through a pointer returns what is wrong, and so does the graph that holds one.
  void* arguments[] = {&size};
  const void* addresses[] = {(void*)four, (void*)sized<2>};
  for (const void* address : addresses)
    for (int blocks : {8, 3}) {
      const cudaError_t error = cudaLaunchKernel(address, blocks, 32, arguments);
      printf(" %d%d", error, error == cudaGetLastError()), error ? void() : (printf("/"), told(size));
    }
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  by_pointer_in(stream, four, 3);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&work, graph, 0);
  printf(" %d", cudaGraphLaunch(work, stream));
}
