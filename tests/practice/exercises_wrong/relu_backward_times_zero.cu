// Multiplies with 0 instead of choosing it: inf * 0 is NaN.
// expect: (?s)x = 0.0 everywhere, .*elements are wrong.*expected 0, got -?nan
__global__ void relu_backward_kernel(const float* grad, const float* x, float* grad_x, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) grad_x[i] = grad[i] * float(!(x[i] <= 0));
}
