// 32 bits: a large shift loses its upper half.
// expect: n = 100,003, shift = 1,099,511,627,777: [\d,]+ of 100,003 elements are wrong
__global__ void roll_kernel(const float* x, int64_t shift, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int small = int(shift);
  int64_t from = (i - small % n) % n;
  if (from < 0) from += n;
  out[i] = x[from];
}
