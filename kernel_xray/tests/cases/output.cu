// output.cu: printf and assert in a kernel; a kernel's output appears on standard output when the host waits.
#include <cassert>
#include <cstdio>

#include "case.h"

__global__ void print_kernel(float x) {
  if (threadIdx.x == 2) {
    printf("block %d thread %u of %u\n", int(blockIdx.x), threadIdx.x, blockDim.x);
    printf("float %.3f and %5.1e, hex %#x, char %c, percent %%, text %s\n", x, double(x) * 1000.0, 255, 'q', "words");
    const int written = printf("long %lld unsigned %llu\n", -1234567890123ll, 1234567890123ull);
    if (written <= 0) printf("printf answered %d\n", written);
  }
}

CASE(print) {
  print_kernel<<<2, 4>>>(1.5f);
  EXPECT_SUCCESS(cudaDeviceSynchronize());
  std::fflush(stdout);
}

// An assertion that holds changes nothing; its expression may hold commas and strings.
template <typename A, typename B>
__device__ bool same(A a, B b) {
  return a == B(a) && b == b;
}

__global__ void assert_kernel(int* out) {
  const int i = threadIdx.x;
  assert(i >= 0);
  assert((same<int, float>(i, 1.0f)) && "a comma, in a template");
  if (i % 2)
    assert(blockDim.x == 8);
  else
    out[i] += 1;
  out[i] += i;
}

CASE(assert_holds) { assert_kernel<<<1, 8>>>(call.data<int>(0)); }
