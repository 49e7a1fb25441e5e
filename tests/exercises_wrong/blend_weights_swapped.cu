// Gives the weight to the wrong end.
// expect: float32, n = 1: 1 of 1 elements are wrong
template <typename scalar_t>
__global__ void blend_kernel(const scalar_t* a, const scalar_t* b, double weight, scalar_t* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  using wide_t = typename Wide<scalar_t>::type;
  wide_t from = static_cast<wide_t>(a[i]), to = static_cast<wide_t>(b[i]);
  out[i] = static_cast<scalar_t>(to + static_cast<wide_t>(weight) * (from - to));
}
