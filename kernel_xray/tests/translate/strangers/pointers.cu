// Launches of what an expression or a pointer holds: the host reads it once, and an X-ray names the kernel.
#include <cstdio>

using Kernel = void (*)(int*, int);
#define LAUNCH(kernel, ...)                                 \
  do {                                                      \
    void* given[] = {__VA_ARGS__};                          \
    cudaLaunchKernel((void*)kernel, 1, 32, given, 0, NULL); \
  } while (0)
#define WITH(kernel, blocks, arguments) kernel<<<blocks, 32>>> arguments
#define PAIRS __cluster_dims__(2, 1, 1)
#define NUMBERED(name, attribute) \
  __global__ void attribute name##_kernel(int* out, int) { *out = 10 + blocks_of_cluster(); }

__device__ int blocks_of_cluster() {
  int blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}
__global__ void add(int* out, int x) { *out = x + 1; }
static __global__ void twice(int* out, int x) { *out = 2 * x; }
namespace inner {
namespace {
template <int N>
__global__ void times(int* out, int x) {
  *out = N * x;
}
}  // namespace
}  // namespace inner
__global__ void PAIRS in_pairs(int* out, int) { *out = blocks_of_cluster(); }
NUMBERED(ten, PAIRS)

int calls = 0;
Kernel next() { return ++calls % 2 ? add : twice; }

struct Owner {
  void launch(int* out, cudaStream_t stream) const { kernel<<<1, 32, 0, stream>>>(out, 7); }
  Kernel kernel;
};
template <typename F>
void by_address(F f, int* out, int x) {
  LAUNCH(f, &out, &x);
}
template <int N>
void by_number(int* out, int x) {
  LAUNCH(inner::times<N>, &out, &x);
}
template <typename F>
void by_macro(F f, int* out) {
  WITH(f, 1, (out, 9));
}
void by_a_kernels_name(Kernel add, int* out) { add<<<1, 32>>>(out, 10); }
template <auto kernel>
void by_value(int* out) {
  kernel<<<1, 32>>>(out, 6);
}

int main() {
  int *out, x = 5;
  cudaMallocManaged(&out, sizeof(int));
  const auto told = [out] {
    cudaDeviceSynchronize();
    printf("%d ", *out);
  };
  next()<<<1, 32>>>(out, 5), told();
  next()<<<1, 32>>>(out, 5), told();
  (calls == 2 ? inner::times<3> : add)<<<1, 32>>>(out, 5), told();
  static_cast<Kernel>(add)<<<1, 32>>>(out, 0), told();
  const struct {
    Kernel kernel;
  } table[] = {{add}, {&twice}};
  for (auto [kernel] : table) kernel<<<1, 32>>>(out, 8), told();
  WITH(table[1].kernel, 1, (out, 9)), told();
  LAUNCH(inner::times<4>, &out, &x);
  told();
  by_address(inner::times<5>, out, x), told();
  by_address(twice, out, x), told();
  by_number<6>(out, x), by_number<7>(out, x), told();
  by_value<inner::times<8>>(out), told();
  by_macro(add, out), told();
  by_a_kernels_name(twice, out), told();
  WITH(in_pairs, 2, (out, 0)), told();
  WITH(ten_kernel, 2, (out, 0)), told();

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t work;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  auto* owner = new Owner{twice};
  owner->launch(out, stream);
  delete owner;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&work, graph, 0);
  cudaGraphLaunch(work, stream), told();
  printf("%d", calls);
}
