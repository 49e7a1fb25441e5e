// Right, but each of the 8 products reads its number of b: nothing is gained.
// expect: m = 16, n = 64, k = 8: .* reads 2 times for each product
__global__ void register_column_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  int64_t column = int64_t(blockIdx.x) * kThreads + threadIdx.x, row = int64_t(blockIdx.y) * kRows;
  if (column >= n) return;
  float sum[kRows] = {};
  for (int64_t i = 0; i < k; ++i) {
    for (int r = 0; r < kRows; ++r) {
      if (row + r < m) sum[r] += a[(row + r) * k + i] * b[i * n + column];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (row + r < m) c[(row + r) * n + column] = sum[r];
  }
}
