// Computes in scalar_t: the 16-bit types round after every step.
// expect: (float16|bfloat16), n = (257|4,099): \d+ of [\d,]+ elements are wrong
template <typename scalar_t>
__global__ void blend_kernel(const scalar_t* a, const scalar_t* b, double weight, scalar_t* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  scalar_t difference = static_cast<scalar_t>(b[i] - a[i]);
  scalar_t part = static_cast<scalar_t>(static_cast<scalar_t>(weight) * difference);
  out[i] = static_cast<scalar_t>(a[i] + part);
}
