// The tanh form of the lesson: close, but another function.
// expect: n = 1, out: 1 of 1 elements are wrong
__global__ void gelu_erf_kernel(const float* x, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1 + expf(-1.5957691f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

__global__ void gelu_erf_backward_kernel(const float* grad, const float* x, float* grad_x, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float z = x[i];
  grad_x[i] = grad[i] * (0.5f * erfcf(-z * kRootHalf) + z * kInverseRoot * expf(-0.5f * z * z));
}
