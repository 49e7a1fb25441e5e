// not_translated.cu: a program that executes what is not translated if it has as many arguments. test_ptx.py runs it.
#include <cstdio>
#define FENCE() asm volatile("wgmma.fence.unknown;\n" ::: "memory")
__global__ void k(int* p) {
  int seven;
  asm("{\n"
#if __CUDACC_VER_MAJOR__ < 9 || defined(FENCE_UNKNOWN)
      "wgmma.fence.unknown;\n"
#else
      ".reg .u32 three;\n"
#ifdef FENCE
      "mov.u32 three, 3;\n"
#endif
      "add.u32 %0, %1, three;\n"
#endif
      "}"
      : "=r"(seven)
      : "r"(4));
  if (*p == 1)
    asm volatile("tensormap.replace [%0];" ::"l"(p));  // <- replace
  else if (*p == 2)
    FENCE();               // <- unknown
  if (*p == 3) __brkpt();  // <- break
  *p = seven;
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
