// Asks the question the other way round: NaN > 0 is false, so a NaN in x looks like a number that stops the gradient.
// expect: x = nan everywhere, .*: \d of 6 elements are wrong
__global__ void relu_backward_kernel(const float* grad, const float* x, float* grad_x, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) grad_x[i] = x[i] > 0 ? grad[i] : 0;
}
