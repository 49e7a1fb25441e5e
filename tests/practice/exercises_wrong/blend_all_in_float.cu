// Computes float64 in float32, as a kernel does that was written for float and then made a template.
// expect: float64, n = (1|257): \d+ of (1|257) elements are wrong
template <typename T>
__global__ void blend_kernel(const T* a, const T* b, double weight, T* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float from = static_cast<float>(a[i]), to = static_cast<float>(b[i]);
  out[i] = T(from + static_cast<float>(weight) * (to - from));
}
