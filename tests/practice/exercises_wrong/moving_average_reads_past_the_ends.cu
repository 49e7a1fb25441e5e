// The window is not cut off at the ends: what lies around x gets into the mean.
// expect: n = 1, radius = 3, .*: 1 of 1 elements are wrong
__global__ void moving_average_kernel(const float* x, int64_t radius, float* out, int64_t n) {
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    float sum = 0;
    for (int64_t j = i - radius; j <= i + radius; ++j) sum += x[j];
    out[i] = sum / float(2 * radius + 1);
  }
}

void start(const float* x, int64_t radius, float* out, int64_t n, int64_t blocks, int64_t threads,
           cudaStream_t stream) {
  moving_average_kernel<<<blocks, threads, 0, stream>>>(x, radius, out, n);
}
