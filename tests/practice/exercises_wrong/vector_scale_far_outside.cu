// Guards one number and uses another: far outside of any tensor.
// expect: (?s)n = 1: cell:\d+: out-of-bounds: writes 4 bytes at an address that belongs to no tensor.*thread \(0, 0, 0\)
__global__ void vector_scale_kernel(const float* x, float factor, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[(i + 1) << 40] = factor * x[i];
}
