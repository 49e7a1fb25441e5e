// Launched on the default stream, whatever stream its input is made on.
// target: gpu
// expect: on a stream that is busy: [\d,]+ of [\d,]+ elements are wrong
__global__ void moving_average_kernel(const float* x, int64_t radius, float* out, int64_t n) {
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    int64_t first = i < radius ? 0 : i - radius, last = n - 1 - i < radius ? n - 1 : i + radius;
    float sum = 0;
    for (int64_t j = first; j <= last; ++j) sum += x[j];
    out[i] = sum / float(last - first + 1);
  }
}

void start(const float* x, int64_t radius, float* out, int64_t n, int64_t blocks, int64_t threads,
           cudaStream_t stream) {
  moving_average_kernel<<<blocks, threads>>>(x, radius, out, n);
}
