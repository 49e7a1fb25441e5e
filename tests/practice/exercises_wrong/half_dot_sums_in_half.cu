// Keeps the sums in halves: they stop growing at 2,048.
// expect: rows of [\d,]+.*: \d of \d elements are wrong
__global__ void half_dot_kernel(const __half* a, const __half* b, float* out, int64_t n) {
  __shared__ __half sums[kThreads];
  a += blockIdx.x * n, b += blockIdx.x * n;
  __half sum = __float2half(0);
  for (int64_t i = threadIdx.x; i < n; i += kThreads) sum = __hfma(a[i], b[i], sum);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int part = kThreads / 2; part > 0; part /= 2) {
    if (threadIdx.x < part) sums[threadIdx.x] = __hadd(sums[threadIdx.x], sums[threadIdx.x + part]);
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = __half2float(sums[0]);
}
