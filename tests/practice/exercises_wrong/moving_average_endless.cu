// The loop never comes to its next element.
// expect: (?s)n = 1, .*(deadlock: the block has spent its budget|deadlock).*moving_average_kernel
__global__ void moving_average_kernel(const float* x, int64_t radius, float* out, int64_t n) {
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride - stride) {
    reinterpret_cast<volatile float*>(out)[i] = x[i];
  }
}

void start(const float* x, int64_t radius, float* out, int64_t n, int64_t blocks, int64_t threads,
           cudaStream_t stream) {
  moving_average_kernel<<<blocks, threads, 0, stream>>>(x, radius, out, n);
}
