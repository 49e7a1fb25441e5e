// Threads without elements leave, and the shuffle waits for them.
// expect: divergent-barrier: |uninitialised-read:
__device__ float larger(float a, float b) { return b > a || isnan(b) ? b : a; }

__global__ void vector_max_kernel(const float* x, float* out, int64_t n) {
  __shared__ float of_warps[kThreads / kWarp];
  x += blockIdx.x * n;
  if (threadIdx.x >= n) return;
  float most = x[threadIdx.x];
  for (int64_t i = threadIdx.x; i < n; i += kThreads) most = larger(most, x[i]);
  for (int d = kWarp / 2; d > 0; d /= 2) most = larger(most, __shfl_down_sync(0xffffffff, most, d));
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = most;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kThreads / kWarp; ++warp) most = larger(most, of_warps[warp]);
    out[blockIdx.x] = most;
  }
}
