// Returns before it writes the sums of no rows, which are 0.
// expect: 0 rows, 5 columns: 5 of 5 elements are wrong
__global__ void column_sum_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  __shared__ float sums[kRows][kColumns];
  if (rows == 0) return;
  int64_t column = int64_t(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0;
  for (int64_t row = threadIdx.y; row < rows && column < columns; row += kRows) sum += x[row * columns + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
    for (int k = 1; k < kRows; ++k) sum += sums[k][threadIdx.x];
    out[column] = sum;
  }
}
