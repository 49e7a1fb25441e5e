// Takes sigmoid for a constant: half of the product rule is missing.
// expect: float32, n = 1, grad_a: 1 of 1 elements are wrong
template <typename T>
__global__ void silu_mul_backward_kernel(const T* grad, const T* a, const T* b, T* grad_a, T* grad_b, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Wide<T> g = Wide<T>(grad[i]), x = Wide<T>(a[i]), y = Wide<T>(b[i]);
  Wide<T> s = 1 / (1 + exp(-x));
  grad_a[i] = T(g * y * s);
  grad_b[i] = T(g * x * s);
}
