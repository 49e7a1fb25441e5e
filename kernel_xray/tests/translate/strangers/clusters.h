// A kernel that another file launches, and one whose definition alone has the attribute.
#pragma once
#include <cooperative_groups.h>

__device__ inline void tell(int* size) {
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) *size = cluster.num_blocks();
}
__global__ void __cluster_dims__(2, 1, 1) of_a_header(int* size) { tell(size); }
