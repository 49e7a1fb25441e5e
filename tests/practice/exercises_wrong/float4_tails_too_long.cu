// Guards the first element of a vector, and touches all four.
// expect: n = 1: .*out-of-bounds:
int64_t count_vectors(const float* x, const float* out, int64_t n) { return 0; }

__global__ void float4_tails_kernel(const float* x, float factor, float* out, int64_t n, int64_t vectors) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (4 * i >= n) return;
  float4 v = reinterpret_cast<const float4*>(x)[i];
  reinterpret_cast<float4*>(out)[i] = make_float4(factor * v.x, factor * v.y, factor * v.z, factor * v.w);
}
