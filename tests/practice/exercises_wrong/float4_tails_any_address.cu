// Believes that every address is a multiple of 16.
// expect: n = 257, x begins 4 bytes .*: .*misaligned:
int64_t count_vectors(const float* x, const float* out, int64_t n) { return n / 4; }

__global__ void float4_tails_kernel(const float* x, float factor, float* out, int64_t n, int64_t vectors) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < vectors) {
    float4 v = reinterpret_cast<const float4*>(x)[i];
    reinterpret_cast<float4*>(out)[i] = make_float4(factor * v.x, factor * v.y, factor * v.z, factor * v.w);
  } else {
    int64_t j = 4 * vectors + (i - vectors);
    if (j < n) out[j] = factor * x[j];
  }
}
