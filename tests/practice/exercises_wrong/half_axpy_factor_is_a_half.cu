// One instruction for two elements, but a has to be rounded to a half before it.
// expect: n = (1|31): \d+ of \d+ elements are wrong
__global__ void half_axpy_kernel(float a, const __half* x, const __half* y, __half* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (2 * i + 1 < n) {
    __half2 u = reinterpret_cast<const __half2*>(x)[i], v = reinterpret_cast<const __half2*>(y)[i];
    reinterpret_cast<__half2*>(out)[i] = __hfma2(__float2half2_rn(a), u, v);
  } else if (2 * i < n) {
    out[2 * i] = __hfma(__float2half(a), x[2 * i], y[2 * i]);
  }
}
