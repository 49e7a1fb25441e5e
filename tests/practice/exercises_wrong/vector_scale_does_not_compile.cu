// A semicolon is missing.
// expect: (?s)cell:[56]: error: expected .*;
__global__ void vector_scale_kernel(const float* x, float factor, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x
  if (i < n) out[i] = factor * x[i];
}
