// Only whole columns of 8 rows are computed.
// expect: m = 3, n = 4, k = 0: 12 of 12 elements are wrong
__global__ void register_column_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  int64_t column = int64_t(blockIdx.x) * kThreads + threadIdx.x, row = int64_t(blockIdx.y) * kRows;
  if (column >= n || row + kRows > m) return;
  float sum[kRows] = {};
  for (int64_t i = 0; i < k; ++i) {
    float y = b[i * n + column];
    for (int r = 0; r < kRows; ++r) {
      if (row + r < m) sum[r] += a[(row + r) * k + i] * y;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (row + r < m) c[(row + r) * n + column] = sum[r];
  }
}
