// Computes ReLU itself, not its gradient.
// expect: n = (1|31): \d+ of (1|31) elements are wrong
__global__ void relu_backward_kernel(const float* grad, const float* x, float* grad_x, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) grad_x[i] = x[i] <= 0 ? 0 : x[i];
}
