// shared_limit.cu: a kernel with ELEMENTS ints of static shared memory; 12,288 of them are the limit.
#include "case.h"

__global__ void large_kernel(int* out) {
  __shared__ int cells[ELEMENTS];
  cells[ELEMENTS - 1] = 5;
  __syncthreads();
  out[0] = cells[ELEMENTS - 1];
}

CASE(large) { large_kernel<<<1, 1>>>(call.data<int>(0)); }
