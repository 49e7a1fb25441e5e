// not_translated.cu: a program that executes what is not translated if it has as many arguments. test_ptx.py runs it.
#include <cstdio>
#define FENCE() asm volatile("wgmma.fence.unknown;\n" ::: "memory")
__global__ void k(int* p) {
  if (*p == 1)
    asm volatile("tensormap.replace [%0];" ::"l"(p));  // <- replace
  else if (*p == 2)
    FENCE();  // <- unknown
  if (*p == 3) __brkpt();  // <- break
  *p = 7;
}
int main(int argc, char**) {
  int* p;
  cudaMallocManaged(&p, sizeof(int));
  *p = argc - 1;
  k<<<1, 1>>>(p);
  const int status = cudaDeviceSynchronize();
  printf("%d", *p);
  return status != 0;
}
