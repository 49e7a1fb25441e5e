// The density without its factor 1 / sqrt(2 * pi).
// expect: n = 1, grad_x: 1 of 1 elements are wrong
__global__ void gelu_erf_kernel(const float* x, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * (0.5f * erfcf(-x[i] * kRootHalf));
}

__global__ void gelu_erf_backward_kernel(const float* grad, const float* x, float* grad_x, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) grad_x[i] = grad[i] * (0.5f * erfcf(-x[i] * kRootHalf) + x[i] * expf(-0.5f * x[i] * x[i]));
}
