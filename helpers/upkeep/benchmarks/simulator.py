"""`python -m helpers bench --simulator`: how fast the simulator runs a tiled matmul, on one core of this machine.

This measures the simulator, never a GPU: one tiled fp32 kernel (16x16 tiles in shared memory, two barriers per tile)
on n x n matrices. With `--numba` the same kernel also runs in numba's CUDA simulator, if numba is installed, at n = 64,
where it takes seconds. With `--kernels`, kernels of the course run too, beside those of an older checkout of the course
(`--before`).
"""

import json
import os
import platform
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import torch

from helpers.paths import ROOT
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

# Prints the processor time of the fastest of many runs on one core, in milliseconds, for each kernel and size.
_KERNELS = """
import json, time
def fastest(run):
    times, end = [], time.perf_counter() + 2
    while len(times) < 5 or time.perf_counter() < end:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1e3
import torch, helpers
from pathlib import Path
torch.set_num_threads(1)
folder = Path(helpers.__file__).parent.parent / "kernels"
def load(name): return helpers.load("bench_" + Path(name).stem, [str(folder / name)], is_python_module=False)
add, softmax, naive = load("vector_add.cu"), load("softmax.cu"), load("matmul/01_naive.cu")
times = {}
for n in (2**20, 2**22):
    a, b = torch.randn(2, n)
    for variant in ("vector_add_simple", "vector_add"):
        times[f"{variant} {n}"] = fastest(lambda: getattr(add, variant)(a, b))
for rows, columns in ((70, 1000), (512, 4096)):
    x = torch.randn(rows, columns)
    times[f"softmax {rows}x{columns}"] = fastest(lambda: softmax.softmax(x))
a, b = torch.randn(2, 256, 256)
times["matmul_naive 256"] = fastest(lambda: naive.matmul_naive(a, b))
print(json.dumps(times))
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


def measure_kernels(before: str | None = None) -> dict:
    """Kernel and size -> {"ms", "before_ms"}: processor time on one core. before: another checkout of the project."""
    times = {"ms": _times(ROOT)}
    if before:
        times["before_ms"] = _times(Path(before).resolve())
    return {name: {key: of[name] for key, of in times.items() if name in of} for name in times["ms"]}


def table(record: Mapping) -> str:
    """The record as text."""
    lines = [f"tiled fp32 matmul in the simulator, one core of {record['machine']['cpu']}"]
    lines += [f"  {f'{n} x {n}':>9}   {record[f'matmul_{n}_seconds'] * 1e3:8.1f} ms" for n in (256, 64)]
    if numba := record.get("numba_matmul_64_seconds"):
        ratio = numba / record["matmul_64_seconds"]
        lines.append(f"    64 x 64   {numba * 1e3:8.1f} ms in numba's simulator: {ratio:,.0f} times as long")
    for name, times in record.get("kernels", {}).items():
        cells = "".join(f"   {key.removesuffix('_ms')} {value:.2f} ms" for key, value in times.items() if key != "ms")
        lines.append(f"  {name:28}{times['ms']:8.2f} ms{cells}")
    return "\n".join(lines)


def _measured(options: Namespace) -> dict:
    kernels = {"kernels": measure_kernels(options.before)} if options.kernels else {}
    return measure(options.numba) | kernels


def _times(root: Path) -> dict[str, float]:
    """Kernel and size -> milliseconds, in the simulator of the checkout at `root`. Raises OSError."""
    if not (root / "kernel_xray").is_dir():
        raise OSError(f"{root} is not a checkout of this project: it has no kernel_xray")
    return _printed([sys.executable, "-c", _KERNELS], _ONE_CORE | {"PYTHONPATH": str(root)}, root)


def _printed(command: list[str], variables: dict[str, str], folder: Path | None = None) -> Any:
    """What a process prints as JSON."""
    environment = os.environ | variables
    return json.loads(
        subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout
    )


BENCHMARK = Benchmark(
    "--simulator",
    __doc__,
    _measured,
    table,
    {
        "--numba": {"metavar": "PYTHON", "help": "an interpreter that has numba, for the comparison"},
        "--kernels": {"action": "store_true", "help": "kernels of the course too"},
        "--before": {"metavar": "FOLDER", "help": "with --kernels: an older checkout of the project"},
    },
    file="simulator.json",
)
