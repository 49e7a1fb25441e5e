// Forgets the gradient of b.
// expect: (?s)float32, n = 1, grad_b: 1 of 1 elements are wrong.*got nan
template <typename scalar_t>
__global__ void silu_mul_backward_kernel(const scalar_t* grad, const scalar_t* a, const scalar_t* b, scalar_t* grad_a,
                                         scalar_t* grad_b, int64_t n) {
  using wide_t = typename Wide<scalar_t>::type;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  wide_t g = static_cast<wide_t>(grad[i]), x = static_cast<wide_t>(a[i]), y = static_cast<wide_t>(b[i]);
  wide_t s = 1 / (1 + exp(-x));
  grad_a[i] = static_cast<scalar_t>(g * y * s * (1 + x * (1 - s)));
}
