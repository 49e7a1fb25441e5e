// Blocks take a part in the order in which they come: right each time, but sums have other bits each time.
// expect: c had other bits in \d of 5 calls with the same inputs
__device__ int tickets[1 << 16];  // one for each block of a range

__global__ void split_k_kernel(const float* a, const float* b, float* parts, int64_t m, int64_t n, int64_t k,
                               int64_t splits) {
  __shared__ int64_t part;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    part = atomicAdd(&tickets[blockIdx.y * gridDim.x + blockIdx.x], 1) % splits;
  }
  __syncthreads();
  int64_t row = int64_t(blockIdx.y) * kY + threadIdx.y, column = int64_t(blockIdx.x) * kX + threadIdx.x;
  if (row >= m || column >= n) return;
  int64_t length = (k + splits - 1) / splits, begin = blockIdx.z * length;
  int64_t end = begin + length < k ? begin + length : k;
  float sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += a[row * k + i] * b[i * n + column];
  parts[(part * m + row) * n + column] = sum;
}

__global__ void add_parts_kernel(const float* parts, float* c, int64_t count, int64_t splits) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int64_t z = 0; z < splits; ++z) sum += parts[z * count + i];
  c[i] = sum;
}
