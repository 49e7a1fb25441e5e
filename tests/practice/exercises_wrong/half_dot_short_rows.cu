// Threads past the end of a short row leave, and their sums are read although nobody has written them.
// expect: uninitialised-read: |divergent-barrier:
__global__ void half_dot_kernel(const __half* a, const __half* b, float* out, int64_t n) {
  __shared__ float sums[kThreads];
  a += blockIdx.x * n, b += blockIdx.x * n;
  if (threadIdx.x < n) {
    float sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += __half2float(a[i]) * __half2float(b[i]);
    sums[threadIdx.x] = sum;
  }
  __syncthreads();
  for (int part = kThreads / 2; part > 0; part /= 2) {
    if (threadIdx.x < part) sums[threadIdx.x] += sums[threadIdx.x + part];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
