// Rolls to the other side.
// expect: n = 5, shift = 2: 5 of 5 elements are wrong
__global__ void roll_kernel(const float* x, int64_t shift, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t from = (i + shift % n) % n;
  if (from < 0) from += n;
  out[i] = x[from];
}
