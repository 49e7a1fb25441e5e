// Right, but never moves more than one float at a time.
// expect: n = 1,023: the result is right, but a thread is to move 16 bytes in one access. In line \d+, .*moves 4
int64_t count_vectors(const float* x, const float* out, int64_t n) { return 0; }

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
