// Stores sigmoid in T between the steps: rounded once too often for the 16-bit types.
// expect: (float16|bfloat16), n = (257|4,099), grad_[ab]: \d+ of [\d,]+ elements are wrong
template <typename T>
__global__ void silu_mul_backward_kernel(const T* grad, const T* a, const T* b, T* grad_a, T* grad_b, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Wide<T> g = Wide<T>(grad[i]), x = Wide<T>(a[i]), y = Wide<T>(b[i]);
  Wide<T> s = 1 / (1 + exp(-x));
  s = Wide<T>(T(s));
  grad_a[i] = T(g * y * s * (1 + x * (1 - s)));
  grad_b[i] = T(g * x * s);
}
