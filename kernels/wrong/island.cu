// wrong/island.cu: bindings to NumPy that look like island.cu and fail, for lesson 14.
// Do not use.
//
//   add_unchecked      ignores every error code, and launches blocks of 2,048 threads,
//                      which no GPU runs
//   add_host_pointers  passes the kernel addresses in the CPU's memory

#include <cuda_runtime.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace py = pybind11;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

__global__ void island_plain_add_kernel(const float* a, const float* b, float* out,
                                        int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] + b[i];
  }
}

Floats add_unchecked(const Floats& a, const Floats& b) {
  int64_t n = a.size();
  Floats out(n);
  float* device[3];
  for (float*& pointer : device) cudaMalloc(&pointer, n * sizeof(float));
  cudaMemset(device[2], 0, n * sizeof(float));
  cudaMemcpy(device[0], a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(device[1], b.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  island_plain_add_kernel<<<(n + 2047) / 2048, 2048>>>(device[0], device[1], device[2],
                                                       n);
  cudaMemcpy(out.mutable_data(), device[2], n * sizeof(float), cudaMemcpyDeviceToHost);
  for (float* pointer : device) cudaFree(pointer);
  return out;
}

// The error since the last call of cudaGetLastError, in words.
const char* last_error() { return cudaGetErrorString(cudaGetLastError()); }

const char* add_host_pointers(const Floats& a, const Floats& b, Floats out) {
  int64_t n = a.size();
  island_plain_add_kernel<<<(n + 255) / 256, 256>>>(a.data(), b.data(),
                                                    out.mutable_data(), n);
  cudaError_t launched = cudaGetLastError(), ran = cudaDeviceSynchronize();
  return cudaGetErrorString(launched != cudaSuccess ? launched : ran);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("add_unchecked", &add_unchecked);
  m.def("add_host_pointers", &add_host_pointers);
  m.def("last_error", &last_error);
}
