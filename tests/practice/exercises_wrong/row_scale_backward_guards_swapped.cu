// Guards the rows with the number of elements: threads past the last row write their sums behind grad_scale.
// expect: wrote outside of grad_scale: grad_scale\[\d+\] was changed
__global__ void grad_x_kernel(const float* grad, const float* scale, float* grad_x, int64_t rows, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * columns) grad_x[i] = grad[i] * scale[i / columns];
}

__global__ void grad_scale_kernel(const float* grad, const float* x, float* grad_scale, int64_t rows, int64_t columns) {
  int64_t r = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (r >= rows * columns && columns > 0) return;
  float sum = 0;
  for (int64_t i = r * columns; i < (r + 1) * columns; ++i) sum += grad[i] * x[i];
  grad_scale[r] = sum;
}
