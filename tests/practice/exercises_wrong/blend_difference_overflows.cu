// Only the difference is kept narrow: 60000 - -60000 is inf in float16.
// expect: float16, (n = (257|4,099)|from \S+ to \S+): \d+ of [\d,]+ elements are wrong
template <typename T>
__global__ void blend_kernel(const T* a, const T* b, double weight, T* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T difference = T(Wide<T>(b[i]) - Wide<T>(a[i]));
  Wide<T> part = Wide<T>(weight) * Wide<T>(difference);
  out[i] = T(Wide<T>(a[i]) + part);
}
