// Mixes up rows and columns in the sum: right for square matrices of equal rows and columns only.
// expect: 3 rows, 5 columns, grad_scale: \d of 3 elements are wrong
__global__ void grad_x_kernel(const float* grad, const float* scale, float* grad_x, int64_t rows, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * columns) grad_x[i] = grad[i] * scale[i / columns];
}

__global__ void grad_scale_kernel(const float* grad, const float* x, float* grad_scale, int64_t rows, int64_t columns) {
  int64_t r = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += grad[r * rows + c] * x[r * rows + c];
  grad_scale[r] = sum;
}
