// The remainder of a negative number is negative in C++: the index is too.
// expect: n = 5, shift = 2: 2 of 5 elements are wrong
__global__ void roll_kernel(const float* x, int64_t shift, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = x[(i - shift) % n];
}
