// Right, but each access moves one half.
// expect: n = 31: the result is right, but a thread is to move 4 bytes in one access. In line \d+, .*moves 2
__global__ void half_axpy_kernel(float a, const __half* x, const __half* y, __half* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t j = 2 * i; j < 2 * i + 2 && j < n; ++j) {
    out[j] = __float2half(a * __half2float(x[j]) + __half2float(y[j]));
  }
}
