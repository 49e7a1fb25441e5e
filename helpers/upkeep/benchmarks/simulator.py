"""`python -m helpers bench --simulator`: how fast the simulator runs a tiled matmul, on one core of this machine.

This measures the simulator, never a GPU: one tiled fp32 kernel (16x16 tiles in shared memory, two barriers per tile)
on n x n matrices. With `--numba` the same kernel also runs in numba's CUDA simulator, if numba is installed, at n = 64,
where it takes seconds.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import date
from typing import Any

import torch

from helpers.upkeep.benchmarks import tool_kernels
from helpers.upkeep.benchmarks.tools import Benchmark, processor

_ONE_CORE = {"KERNEL_XRAY_THREADS": "1", "KERNEL_LADDER_TARGET": "simulator"}
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
    """The shortest of `repeat` runs of the n x n matmul in this process; the result is checked. n: a multiple of 16."""
    ops = tool_kernels.load(traced=False)
    a, b = torch.rand(2, n, n)
    c = torch.empty_like(a)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        ops.matmul(a, b, c)
        times.append(time.perf_counter() - start)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)
    return min(times)


def measure(numba: str | None = None) -> dict:
    """The record: this machine, and seconds on one core. numba: an interpreter that has numba, to compare with."""
    record: dict = {
        "machine": {"cpu": processor(), "python": platform.python_version(), "date": date.today().isoformat()}
    }
    for n in (256, 64):
        code = f"from helpers.upkeep.benchmarks.simulator import seconds; print(seconds({n}))"
        record[f"matmul_{n}_seconds"] = _printed([sys.executable, "-c", code], _ONE_CORE)
    if numba:
        record["numba_matmul_64_seconds"] = _printed([numba, "-c", _NUMBA, "64"], {"NUMBA_ENABLE_CUDASIM": "1"})
    return record


def table(record: Mapping) -> str:
    """The record as text."""
    lines = [f"tiled fp32 matmul in the simulator, one core of {record['machine']['cpu']}"]
    lines += [f"  {f'{n} x {n}':>9}   {record[f'matmul_{n}_seconds'] * 1e3:8.1f} ms" for n in (256, 64)]
    if numba := record.get("numba_matmul_64_seconds"):
        ratio = numba / record["matmul_64_seconds"]
        lines.append(f"    64 x 64   {numba * 1e3:8.1f} ms in numba's simulator: {ratio:,.0f} times as long")
    return "\n".join(lines)


def _printed(command: list[str], variables: dict[str, str]) -> Any:
    """What a process prints as JSON."""
    environment = os.environ | variables
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


BENCHMARK = Benchmark(
    "--simulator",
    __doc__,
    lambda options: measure(options.numba),
    table,
    {"--numba": {"metavar": "PYTHON", "help": "an interpreter that has numba, for the comparison"}},
    file="simulator.json",
)
