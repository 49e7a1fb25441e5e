// Divides infinity by infinity where exp(x) is too large for a float.
// expect: (?s)x = \[.*\]: 1 of 8 elements are wrong.*expected -1.5, got nan
__global__ void softplus_backward_kernel(const float* grad, const float* x, float* grad_x, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) grad_x[i] = grad[i] * expf(x[i]) / (1 + expf(x[i]));
}
