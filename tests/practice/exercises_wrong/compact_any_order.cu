// Places by an atomic counter: the right numbers, in the order in which the threads come.
// expect: (n = \d+|\[\w.*|x = .*|1,000 .*|600 .*): .*(elements are wrong|race)
__global__ void count_kernel(const float* x, int64_t n, int64_t* counts) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int kept = __syncthreads_count(i < n && x[i] > 0);
  if (threadIdx.x == 0) counts[blockIdx.x] = kept;
}

__global__ void compact_kernel(const float* x, int64_t n, const int64_t* first, float* out) {
  __shared__ unsigned long long kept;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) kept = 0;
  __syncthreads();
  int warp = threadIdx.x / kWarp;
  for (int w = kThreads / kWarp - 1; w >= 0; --w) {
    if (w == warp && i < n && x[i] > 0) out[first[blockIdx.x] + atomicAdd(&kept, 1ull)] = x[i];
    __syncthreads();
  }
}
