// Adds in the order in which the warps arrive: the result is right each time, but not the same each time.
// expect: out had other bits in \d of 5 calls with the same inputs
__global__ void column_sum_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  int64_t column = int64_t(blockIdx.x) * kColumns + threadIdx.x;
  if (threadIdx.y == 0 && column < columns) out[column] = 0;
  __syncthreads();
  if (column >= columns) return;
  float sum = 0;
  for (int64_t row = threadIdx.y; row < rows; row += kRows) sum += x[row * columns + column];
  atomicAdd(&out[column], sum);
}
