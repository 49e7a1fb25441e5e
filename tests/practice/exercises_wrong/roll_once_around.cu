// Wraps once only: a shift by more than n leads outside.
// expect: n = (1|5|257), shift = \S+: (\d+ of \d+ elements are wrong|.*illegal memory access)
__global__ void roll_kernel(const float* x, int64_t shift, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t from = i - shift;
  if (from < 0) from += n;
  if (from >= n) from -= n;
  out[i] = x[from];
}
