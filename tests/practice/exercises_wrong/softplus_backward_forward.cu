// The function itself in place of its slope.
// expect: n = 1: 1 of 1 elements are wrong
__global__ void softplus_backward_kernel(const float* grad, const float* x, float* grad_x, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) grad_x[i] = grad[i] * log1pf(expf(x[i]));
}
