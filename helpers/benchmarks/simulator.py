"""`python -m helpers bench --simulator`: how fast the simulator runs a tiled matmul, on one core of this machine.

What is measured is the simulator, never a GPU: the same tiled fp32 kernel (16x16 tiles in shared memory, two barriers
per tile), n x n matrices. With `--numba` the same kernel also runs in numba's CUDA simulator, if numba is installed,
at n = 64, where it takes seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import torch

from helpers.build import loader

_KERNEL = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include "launch.h"
using torch::stable::Tensor;
constexpr int kTile = 16;

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += kTile) {
    left[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  Tensor c = torch::stable::empty_like(a);
  int n = a.size(0);
  matmul_kernel<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.mutable_data_ptr<float>(), n);
  return c;
}
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("matmul(Tensor a, Tensor b) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("matmul", TORCH_BOX(&matmul)); }
"""
_NUMBA = """
import sys, time
import numpy as np
from numba import cuda, float32
TILE = 16

@cuda.jit
def matmul(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    row, column = cuda.blockIdx.y * TILE + cuda.threadIdx.y, cuda.blockIdx.x * TILE + cuda.threadIdx.x
    total = 0.0
    for t in range(0, a.shape[0], TILE):
        left[cuda.threadIdx.y, cuda.threadIdx.x] = a[row, t + cuda.threadIdx.x]
        right[cuda.threadIdx.y, cuda.threadIdx.x] = b[t + cuda.threadIdx.y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[cuda.threadIdx.y, k] * right[k, cuda.threadIdx.x]
        cuda.syncthreads()
    c[row, column] = total

n = int(sys.argv[1])
a, b = np.random.rand(2, n, n).astype(np.float32)
c = np.zeros_like(a)
start = time.perf_counter()
matmul[(n // TILE, n // TILE), (TILE, TILE)](a, b, c)
print(time.perf_counter() - start)
assert np.allclose(c, a @ b, rtol=1e-4)
"""


def seconds(n: int, repeat: int = 7) -> float:
    """The shortest of a few runs of the n x n matmul, checked, in this process. n: a multiple of 16."""

    ops = loader.load_inline(
        "bench_simulator", "", cuda_sources=_KERNEL, no_implicit_headers=True, is_python_module=False
    )
    a, b = torch.rand(2, n, n)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        c = ops.matmul(a, b)
        times.append(time.perf_counter() - start)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)
    return min(times)


def seconds_on_one_core(n: int) -> float:
    """`seconds(n)` in a process whose simulator has one thread."""
    environment = os.environ | {"KERNEL_LADDER_THREADS": "1", "KERNEL_LADDER_TARGET": "simulator"}
    code = f"from helpers.benchmarks.simulator import seconds; print(seconds({n}))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def numba_seconds(python: str, n: int) -> float:
    """The same kernel in numba's CUDA simulator, under the interpreter `python`."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [python, "-c", _NUMBA, str(n)]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main(arguments: list[str]) -> int:
    """Prints the times; with --record writes them to a file. The exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m helpers bench", description=__doc__)
    parser.add_argument("--simulator", action="store_true", required=True)
    parser.add_argument("--numba", metavar="PYTHON", help="an interpreter that has numba, for the comparison")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="write the times there, such as results/simulator.json"
    )
    options = parser.parse_args(arguments)
    record = {
        "machine": {"cpu": _cpu(), "python": platform.python_version(), "date": date.today().isoformat()},
        "matmul_256_seconds": seconds_on_one_core(256),
        "matmul_64_seconds": seconds_on_one_core(64),
    }
    print(f"tiled fp32 matmul in the simulator, one core of {record['machine']['cpu']}")
    print(f"  256 x 256   {record['matmul_256_seconds'] * 1e3:8.1f} ms")
    print(f"   64 x 64    {record['matmul_64_seconds'] * 1e3:8.1f} ms")
    if options.numba:
        record["numba_matmul_64_seconds"] = numba_seconds(options.numba, 64)
        ratio = record["numba_matmul_64_seconds"] / record["matmul_64_seconds"]
        milliseconds = record["numba_matmul_64_seconds"] * 1e3
        print(f"   64 x 64    {milliseconds:8.1f} ms in numba's simulator: {ratio:,.0f} times that")
    if options.record:
        options.record.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
