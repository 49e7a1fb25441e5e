// Forgets that scale was used in every column: the gradient of a broadcast input has to be summed.
// expect: 3 rows, 0 columns, grad_scale: 3 of 3 elements are wrong
__global__ void grad_x_kernel(const float* grad, const float* scale, float* grad_x, int64_t rows, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * columns) grad_x[i] = grad[i] * scale[i / columns];
}

__global__ void grad_scale_kernel(const float* grad, const float* x, float* grad_scale, int64_t rows, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * columns) grad_scale[i / columns] = grad[i] * x[i];
}
