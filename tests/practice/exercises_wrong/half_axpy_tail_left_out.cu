// Whole pairs only: the last of an odd number of elements is never written.
// expect: n = 1: 1 of 1 elements are wrong
__global__ void half_axpy_kernel(float a, const __half* x, const __half* y, __half* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (2 * i + 1 >= n) return;
  float2 u = __half22float2(reinterpret_cast<const __half2*>(x)[i]);
  float2 v = __half22float2(reinterpret_cast<const __half2*>(y)[i]);
  reinterpret_cast<__half2*>(out)[i] = __floats2half2_rn(a * u.x + v.x, a * u.y + v.y);
}
