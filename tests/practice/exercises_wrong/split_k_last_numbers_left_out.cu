// A range is k / splits long, rounded down: what is left of k belongs to nobody.
// expect: m = 1, n = 1, k = 5, 3 splits: .*wrong
__global__ void split_k_kernel(const float* a, const float* b, float* parts, int64_t m, int64_t n, int64_t k,
                               int64_t splits) {
  int64_t row = int64_t(blockIdx.y) * kY + threadIdx.y, column = int64_t(blockIdx.x) * kX + threadIdx.x;
  if (row >= m || column >= n) return;
  int64_t length = k / splits, begin = blockIdx.z * length;
  int64_t end = begin + length < k ? begin + length : k;
  float sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += a[row * k + i] * b[i * n + column];
  parts[(blockIdx.z * m + row) * n + column] = sum;
}

__global__ void add_parts_kernel(const float* parts, float* c, int64_t count, int64_t splits) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int64_t z = 0; z < splits; ++z) sum += parts[z * count + i];
  c[i] = sum;
}
