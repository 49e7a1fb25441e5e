// The first row of threads reads sums that the other warps may not have written yet.
// expect: (?s)race: .*column_sum_kernel
__global__ void column_sum_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  __shared__ float sums[kRows][kColumns];
  int64_t column = int64_t(blockIdx.x) * kColumns + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int64_t row = threadIdx.y; row < rows; row += kRows) sum += x[row * columns + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  if (threadIdx.y == 0) {
    for (int k = 1; k < kRows; ++k) sum += sums[k][threadIdx.x];
    out[column] = sum;
  }
}
