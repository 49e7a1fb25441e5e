// Ignores the grid that the caller asks for, and asks for more threads than a block can have.
// expect: n = 1, .*: .*invalid (configuration )?argument
__global__ void moving_average_kernel(const float* x, int64_t radius, float* out, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i];
}

void start(const float* x, int64_t radius, float* out, int64_t n, int64_t blocks, int64_t threads,
           cudaStream_t stream) {
  moving_average_kernel<<<1, 2048, 0, stream>>>(x, radius, out, n);
}
