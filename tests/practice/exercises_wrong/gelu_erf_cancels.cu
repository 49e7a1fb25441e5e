// Subtracts nearly equal numbers where x is far below 0: all digits but one are lost.
// expect: x = \[-3.0, .*\], out: \d of 5 elements are wrong
__global__ void gelu_erf_kernel(const float* x, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * (0.5f * (1 + erff(x[i] * kRootHalf)));
}

__global__ void gelu_erf_backward_kernel(const float* grad, const float* x, float* grad_x, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float z = x[i];
  grad_x[i] = grad[i] * (0.5f * (1 + erff(z * kRootHalf)) + z * kInverseRoot * expf(-0.5f * z * z));
}
