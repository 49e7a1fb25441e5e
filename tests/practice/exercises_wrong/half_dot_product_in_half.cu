// Adds in a float, but rounds each product to a half first: 250 * 250 becomes 62,496.
// expect: rows of [\d,]+.*: \d of \d elements are wrong
__global__ void half_dot_kernel(const __half* a, const __half* b, float* out, int64_t n) {
  __shared__ float sums[kThreads];
  a += blockIdx.x * n, b += blockIdx.x * n;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += __half2float(__hmul(a[i], b[i]));
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int part = kThreads / 2; part > 0; part /= 2) {
    if (threadIdx.x < part) sums[threadIdx.x] += sums[threadIdx.x + part];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
