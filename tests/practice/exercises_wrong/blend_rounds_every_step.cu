// Computes in T: the 16-bit types round after every step.
// expect: (float16|bfloat16), n = (257|4,099): \d+ of [\d,]+ elements are wrong
template <typename T>
__global__ void blend_kernel(const T* a, const T* b, double weight, T* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T difference = T(b[i] - a[i]);
  T part = T(T(weight) * difference);
  out[i] = T(a[i] + part);
}
