// Right, but the sums are in c, which is memory: each product reads and writes one.
// expect: m = 16, n = 64, k = 8: .* reads 2\.12 times for each product
__global__ void register_column_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  int64_t column = int64_t(blockIdx.x) * kThreads + threadIdx.x, row = int64_t(blockIdx.y) * kRows;
  if (column >= n) return;
  for (int r = 0; r < kRows && row + r < m; ++r) c[(row + r) * n + column] = 0;
  for (int64_t i = 0; i < k; ++i) {
    float y = b[i * n + column];
    for (int r = 0; r < kRows; ++r) {
      if (row + r < m) c[(row + r) * n + column] += a[(row + r) * k + i] * y;
    }
  }
}
