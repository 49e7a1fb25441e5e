"""`python -m helpers bench --trace`: what the traced mode costs for each access of a lane.

CPU time of this process, not wall time, since a launch is traced on one core; the best of several runs, since other
programs disturb. The time of a whole X-ray counts, from the call to the report.
"""

from __future__ import annotations

import argparse
import platform
import resource
from dataclasses import dataclass

import torch

from helpers.build import loader
from helpers.simt import libsimt
from helpers.xrays.report import Report
from helpers.xrays.run import xray

_SOURCE = """
#include <cuda_runtime.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
using torch::stable::Tensor;

__global__ void add_kernel(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < n; first += 16) {
    as[threadIdx.y][threadIdx.x] = a[row * n + first + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
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
  add_kernel<<<(n + 255) / 256, 256>>>((const float*)a.data_ptr(), (const float*)b.data_ptr(), (float*)c.data_ptr(), n);
}
void matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
  int n = a.size(0);
  matmul_kernel<<<dim3(n / 16, n / 16), dim3(16, 16)>>>((const float*)a.data_ptr(), (const float*)b.data_ptr(),
                                                        (float*)c.data_ptr(), n);
}
void sum(const Tensor& a, const Tensor& total) {
  sum_kernel<<<32, 256>>>((const float*)a.data_ptr(), (float*)total.data_ptr(), a.numel());
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
TARGET = 150  # nanoseconds


@dataclass(frozen=True)
class Cost:
    """What tracing one kernel cost."""

    kernel: str
    accesses: int  # of lanes
    seconds: float  # of CPU time, the best run

    @property
    def nanoseconds(self) -> float:
        """For each access of a lane."""
        return 1e9 * self.seconds / self.accesses


def measure(repeat: int = 5) -> list[Cost]:
    """Traces three kernels `repeat` times each: an addition, a tiled matrix product, a sum with shuffles."""
    ops = loader.load_inline(
        "trace_bench", "", cuda_sources=_SOURCE, no_implicit_headers=True, is_python_module=False, traced=True
    )
    n, m = 1 << 18, 96
    vectors, squares = [torch.rand(n) for _ in range(3)], [torch.rand(m, m) for _ in range(3)]
    calls = {"add": (ops.add, vectors), "matmul": (ops.matmul, squares), "sum": (ops.sum, [vectors[0], torch.zeros(1)])}
    costs = []
    for name, (function, tensors) in calls.items():
        runs = []
        for _ in range(repeat):
            start = _cpu_seconds()
            report = xray(function, *tensors, seed=0, max_blocks=10**6)
            runs.append(_cpu_seconds() - start)
        costs.append(Cost(name, _accesses(report), min(runs)))
    return costs


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _accesses(report: Report) -> int:
    if report.faults:
        raise RuntimeError(f"the benchmark's kernel is faulty: {report.faults[0]}")
    return round(sum(record.requests * record.active_lanes for record in report.lines))


def main(arguments: list[str]) -> int:
    """Runs the benchmark and prints a table; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m helpers bench", description=__doc__)
    parser.add_argument("--trace", action="store_true", required=True, help="measure the cost of the traced mode")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each kernel, of which the best counts")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error(f"--repeat is {options.repeat}; it must be 1 or more")
    print(f"traced mode, {libsimt.compiler_identity(libsimt.compiler())}, {platform.machine()}, one core")
    print(f"  {'kernel':<8}{'accesses of lanes':>18}{'ns each':>9}   (target: {TARGET})")
    for cost in measure(options.repeat):
        print(f"  {cost.kernel:<8}{cost.accesses:>18,}{cost.nanoseconds:>9.0f}")
    return 0
