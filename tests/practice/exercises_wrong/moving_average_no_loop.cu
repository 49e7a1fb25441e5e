// One element per thread, whatever the grid: the elements past the last thread are never written.
// expect: (?s)n = 257, .*1 x 256 threads: 1 of 257 elements are wrong.*\[256\]: expected .*, got nan
__global__ void moving_average_kernel(const float* x, int64_t radius, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t first = i < radius ? 0 : i - radius, last = n - 1 - i < radius ? n - 1 : i + radius;
  float sum = 0;
  for (int64_t j = first; j <= last; ++j) sum += x[j];
  out[i] = sum / float(last - first + 1);
}

void start(const float* x, int64_t radius, float* out, int64_t n, int64_t blocks, int64_t threads,
           cudaStream_t stream) {
  moving_average_kernel<<<blocks, threads, 0, stream>>>(x, radius, out, n);
}
