"""Kernels to measure the simulator and its traced mode: an addition, a tiled matrix product, a sum by shuffles."""

from typing import Any

from kernel_xray.build import loader

_SOURCE = """
#include <cuda_runtime.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
using torch::stable::Tensor;
constexpr int kTile = 16;

__global__ void add_kernel(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < n; first += kTile) {
    left[threadIdx.y][threadIdx.x] = a[row * n + first + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void sum_kernel(const float* a, float* sum, int n) {
  __shared__ float partial[8];
  float mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += a[i];
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(0xffffffffu, mine, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 8; ++i) mine += partial[i];
    atomicAdd(sum, mine);
  }
}

void add(const Tensor& a, const Tensor& b, const Tensor& c) {
  int n = a.numel();
  add_kernel<<<(n + 255) / 256, 256>>>(a.const_data_ptr<float>(), b.const_data_ptr<float>(),
                                       c.mutable_data_ptr<float>(), n);
}
void matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
  int n = a.size(0);
  matmul_kernel<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.mutable_data_ptr<float>(), n);
}
void sum(const Tensor& a, const Tensor& total) {
  sum_kernel<<<32, 256>>>(a.const_data_ptr<float>(), total.mutable_data_ptr<float>(), a.numel());
}
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("add(Tensor a, Tensor b, Tensor(a!) c) -> ()");
  m.def("matmul(Tensor a, Tensor b, Tensor(a!) c) -> ()");
  m.def("sum(Tensor a, Tensor(a!) total) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("add", TORCH_BOX(&add));
  m.impl("matmul", TORCH_BOX(&matmul));
  m.impl("sum", TORCH_BOX(&sum));
}
"""


def load(*, traced: bool) -> Any:
    """add(a, b, c), matmul(a, b, c) of square matrices (side: a multiple of 16), sum(a, total): all float32."""
    name = "bench_traced" if traced else "bench_untraced"
    return loader.load_inline(
        name, "", cuda_sources=_SOURCE, no_implicit_headers=True, is_python_module=False, traced=traced
    )
