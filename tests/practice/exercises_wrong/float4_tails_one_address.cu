// Looks at x alone.
// expect: n = 258, x begins 0 bytes .* out 8: .*misaligned:
int64_t count_vectors(const float* x, const float* out, int64_t n) { return ladder::aligned_to_16(x) ? n / 4 : 0; }

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
