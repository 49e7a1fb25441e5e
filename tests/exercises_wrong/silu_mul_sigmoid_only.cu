// Leaves out the factor a.
// expect: float32, n = 1: 1 of 1 elements are wrong
template <typename scalar_t>
__global__ void silu_mul_kernel(const scalar_t* a, const scalar_t* b, scalar_t* out, int64_t n) {
  using wide_t = typename Wide<scalar_t>::type;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  wide_t x = static_cast<wide_t>(a[i]);
  out[i] = static_cast<scalar_t>(static_cast<wide_t>(b[i]) / (1 + exp(-x)));
}
