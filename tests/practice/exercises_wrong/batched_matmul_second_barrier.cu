// The next tiles overwrite what other warps are still reading.
// expect: (?s)race: .*batched_matmul_kernel
__global__ void batched_matmul_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  a += blockIdx.z * m * k, b += blockIdx.z * k * n, c += blockIdx.z * m * n;
  int tx = threadIdx.x, ty = threadIdx.y;
  int64_t row = int64_t(blockIdx.y) * kTile + ty, column = int64_t(blockIdx.x) * kTile + tx;
  float sum = 0;
  for (int64_t first = 0; first < k; first += kTile) {
    tile_a[ty][tx] = row < m && first + tx < k ? a[row * k + first + tx] : 0;
    tile_b[ty][tx] = first + ty < k && column < n ? b[(first + ty) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
