// Only the first of the eight rows of threads writes its sum: seven rows in eight are missing.
// expect: 7 rows, 31 columns: 31 of 31 elements are wrong
__global__ void column_sum_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  int64_t column = int64_t(blockIdx.x) * kColumns + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int64_t row = threadIdx.y; row < rows; row += kRows) sum += x[row * columns + column];
  if (threadIdx.y == 0) out[column] = sum;
}
