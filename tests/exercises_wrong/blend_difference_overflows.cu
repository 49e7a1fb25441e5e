// Only the difference is kept narrow: 60000 - -60000 is inf in float16.
// expect: float16, (n = (257|4,099)|from \S+ to \S+): \d+ of [\d,]+ elements are wrong
template <typename scalar_t>
__global__ void blend_kernel(const scalar_t* a, const scalar_t* b, double weight, scalar_t* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  using wide_t = typename Wide<scalar_t>::type;
  scalar_t difference = static_cast<scalar_t>(static_cast<wide_t>(b[i]) - static_cast<wide_t>(a[i]));
  wide_t part = static_cast<wide_t>(weight) * static_cast<wide_t>(difference);
  out[i] = static_cast<scalar_t>(static_cast<wide_t>(a[i]) + part);
}
