// Gives the weight to the wrong end.
// expect: float32, n = 1: 1 of 1 elements are wrong
template <typename T>
__global__ void blend_kernel(const T* a, const T* b, double weight, T* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Wide<T> from = Wide<T>(a[i]), to = Wide<T>(b[i]);
  out[i] = T(to + Wide<T>(weight) * (from - to));
}
