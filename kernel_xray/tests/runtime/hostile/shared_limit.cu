// shared_limit.cu: a kernel with ELEMENTS ints of static shared memory; 12,288 of them fit everywhere.
#include "case.h"

// The index is not known when this compiles, or the array could be left out.
__global__ void large_kernel(int* out, int i) {
  __shared__ int cells[ELEMENTS];
  cells[threadIdx.x] = 0;
  cells[i] = 5;
  __syncthreads();
  out[0] = cells[ELEMENTS - 1] + cells[threadIdx.x];
}

CASE(large) { large_kernel<<<1, 1>>>(call.data<int>(0), ELEMENTS - 1); }
