// A kernel that another file launches, and one whose definition alone has the attribute.
#pragma once
#include <cooperative_groups.h>

__device__ inline void tell(int* size) {
  const auto cluster = cooperative_groups::this_cluster();
  const auto grid = cooperative_groups::this_grid();
  const unsigned x = cluster.block_index().x, blocks = cluster.dim_blocks().x;
  __shared__ int own;
  bool right = x == cluster.block_rank() && blocks == cluster.num_blocks() && x == blockIdx.x % blocks;
  right &= cluster.thread_index().x == cluster.thread_rank() && cluster.dim_threads().x == cluster.num_threads();
  right &= grid.cluster_index().x == blockIdx.x / blocks && grid.cluster_rank() == blockIdx.x / blocks;
  right &= grid.dim_clusters().x == 8 / blocks && grid.num_clusters() == 8 / blocks;
  right &= grid.thread_index().x == grid.thread_rank() && grid.dim_threads().x == grid.num_threads();
  right &= cluster.query_shared_rank(cluster.map_shared_rank(&own, blocks - 1)) == blocks - 1;
  cluster.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) *size = right ? blocks : 0;
}
__global__ void __cluster_dims__(2, 1, 1) of_a_header(int* size) { tell(size); }
