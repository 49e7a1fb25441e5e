// The block is left out of the index: all blocks write the first 256 elements.
// expect: (?s)n = 257: 1 of 257 elements are wrong.*\[256\]: expected .*, got nan
__global__ void vector_scale_kernel(const float* x, float factor, float* out, int64_t n) {
  int64_t i = threadIdx.x;
  if (i < n) out[i] = factor * x[i];
}
