"""`python -m helpers bench --first-result`: seconds from nothing built to the first result, for each tool of lesson 15.

Each computes a softmax of 300 x 1000 in a process of its own, with empty caches: PyTorch's, Triton's, the course's.
Importing PyTorch and starting CUDA are not counted. With nvcc, since the simulator builds with another compiler.
results/first_result.json holds the recorded times.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping

import torch

from helpers.ladder.catalogue import OPERATORS
from helpers.paths import ROOT
from helpers.upkeep.benchmarks.timer import refusal
from helpers.upkeep.benchmarks.tools import Benchmark
from kernel_xray.machine import cache

CACHES = (cache.VARIABLE, "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR")


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def _in_cuda() -> Callable:
    (kernel,) = (k for k in OPERATORS["softmax"].kernels if k.name == "softmax")
    return kernel.extension().softmax


MAKE: dict[str, Callable[[], Callable]] = {
    "torch.compile": lambda: torch.compile(_softmax, dynamic=False),
    "Triton": lambda: OPERATORS["softmax"].peers["triton"](),
    "CUDA C++": _in_cuda,
}


def first(tool: str, device: str = "cuda") -> float:
    """Seconds in this process until `tool` has its first result, which is checked. Raises AssertionError."""
    x = torch.randn(300, 1000, device=device)
    _softmax(x).cpu()  # starts CUDA
    start = time.perf_counter()
    y = MAKE[tool]()(x).cpu()
    seconds = time.perf_counter() - start
    torch.testing.assert_close(y, _softmax(x).cpu())
    return seconds


def measure(names: Iterable[str] = MAKE, device: str = "cuda") -> list[dict]:
    """A record for each tool: its name and the seconds. Raises RuntimeError with the output of a tool that failed."""
    records = []
    for tool in names:
        with tempfile.TemporaryDirectory() as empty:
            settings = {name: os.path.join(empty, name) for name in CACHES}
            code = f"from {__name__} import first; print('seconds', first({tool!r}, {device!r}))"
            run = subprocess.run(
                [sys.executable, "-c", code], env=os.environ | settings, cwd=ROOT, capture_output=True, text=True
            )
        last = run.stdout.strip().split("\n")[-1].split()
        if run.returncode or last[:1] != ["seconds"]:
            raise RuntimeError(f"{tool}: {(run.stdout + run.stderr)[-2000:]}")
        records.append({"tool": tool, "seconds": round(float(last[1]), 2)})
    return records


def table(document: Mapping) -> str:
    """The records as text, with GPU and date."""
    machine = document["machine"]
    lines = [f"{r['tool']:>13}: {r['seconds']:6.2f} s to the first result" for r in document["records"]]
    source = f"recorded on {machine['gpu']}, CUDA {machine['cuda']}, PyTorch {machine['torch']}, {machine['date']}"
    return "\n".join([*lines, f"{source}; empty caches, nvcc"])


BENCHMARK = Benchmark(
    "--first-result",
    __doc__,
    lambda options: measure(),
    table,
    file="first_result.json",
    where="on a GPU's host",
    refusal=lambda options: refusal(),
)
recorded = BENCHMARK.recorded
