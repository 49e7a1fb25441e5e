// Writes through a null pointer.
// expect: n = 1: .*(vector_scale_kernel.*illegal memory access|illegal memory access)
__global__ void vector_scale_kernel(const float* x, float factor, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  float* volatile nowhere = nullptr;
  if (i < n) nowhere[i] = factor * x[i];
}
