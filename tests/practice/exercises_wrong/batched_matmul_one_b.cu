// Every product takes the first matrix of b.
// expect: batch 2, m = 3, n = 5, k = 4: \d+ of 30 elements are wrong
__global__ void batched_matmul_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  a += blockIdx.z * m * k, c += blockIdx.z * m * n;
  int tx = threadIdx.x, ty = threadIdx.y;
  int64_t row = int64_t(blockIdx.y) * kTile + ty, column = int64_t(blockIdx.x) * kTile + tx;
  float sum = 0;
  for (int64_t first = 0; first < k; first += kTile) {
    tile_a[ty][tx] = row < m && first + tx < k ? a[row * k + first + tx] : 0;
    tile_b[ty][tx] = first + ty < k && column < n ? b[(first + ty) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
