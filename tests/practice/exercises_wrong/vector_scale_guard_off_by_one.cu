// The guard lets one thread too many in: it writes into whatever lies behind the vector.
// expect: n = 1: it wrote outside of out: out\[1\] was changed
__global__ void vector_scale_kernel(const float* x, float factor, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = factor * x[i];
}
