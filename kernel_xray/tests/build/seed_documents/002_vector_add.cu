// Seed document 002, as printed, repairs marked: the pybind11 + NumPy island, kernel and launcher.
// clang-format off
// vector_add.cu  -- kernel + host launcher (NumPy buffers are host memory)
#include <cuda_runtime.h>

__global__ void vector_add_kernel(const float* a, const float* b, float* c, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) c[idx] = a[idx] + b[idx];
}

extern "C" void vector_add_cuda(const float* a, const float* b, float* c, int n) {
    float *da, *db, *dc;
    size_t bytes = static_cast<size_t>(n) * sizeof(float);
    cudaMalloc(&da, bytes); cudaMalloc(&db, bytes); cudaMalloc(&dc, bytes);
    cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice);   // host -> device
    cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice);
    int threads = 256, blocks = (n + threads - 1) / threads;
    vector_add_kernel<<<blocks, threads>>>(da, db, dc, n);
    cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost);   // device -> host
    cudaFree(da); cudaFree(db); cudaFree(dc);
}
