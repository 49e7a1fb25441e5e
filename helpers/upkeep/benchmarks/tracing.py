"""`python -m helpers bench --trace`: what the traced mode costs per access of a lane.

It counts the CPU time of this process, since a launch is traced on one core, over a whole X-ray, from the call to the
report. The fastest of several runs counts, since other programs only slow a run down.
"""

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from helpers.upkeep.benchmarks import tool_kernels
from helpers.upkeep.benchmarks.tools import Benchmark, positive
from kernel_xray.report.run import xray
from kernel_xray.runtime import libsimt

TARGET = 150  # nanoseconds


@dataclass(frozen=True)
class Cost:
    """The cost of tracing one kernel."""

    kernel: str
    accesses: int  # of lanes
    seconds: float  # of CPU time, the fastest run

    @property
    def nanoseconds(self) -> float:
        """Per access of a lane."""
        return 1e9 * self.seconds / self.accesses


def measure(repeat: int = 5) -> list[Cost]:
    """Traces each of three kernels `repeat` times. Raises RuntimeError if one is faulty."""
    ops = tool_kernels.load(traced=True)
    n, side = 1 << 18, 96
    vectors, squares = [torch.rand(n) for _ in range(3)], [torch.rand(side, side) for _ in range(3)]
    calls = {"add": (ops.add, vectors), "matmul": (ops.matmul, squares), "sum": (ops.sum, [vectors[0], torch.zeros(1)])}
    costs = []
    for name, (function, tensors) in calls.items():
        runs = []
        for _ in range(repeat):
            start = time.process_time()
            report = xray(function, *tensors, seed=0, max_blocks=10**6)
            runs.append(time.process_time() - start)
        if report.faults:
            raise RuntimeError(f"the benchmark's kernel is faulty: {report.faults[0]}")
        accesses = round(sum(record.requests * record.active_lanes for record in report.lines))
        costs.append(Cost(name, accesses, min(runs)))
    return costs


def table(costs: Sequence[Cost]) -> str:
    """The costs as text, with the compiler."""
    compiler = libsimt.compiler_identity(libsimt.compiler())
    lines = [f"traced mode, {compiler}, {platform.machine()}, one core"]
    lines.append(f"  {'kernel':<8}{'accesses of lanes':>18}{'ns each':>9}   (target: {TARGET})")
    lines += [f"  {cost.kernel:<8}{cost.accesses:>18,}{cost.nanoseconds:>9.0f}" for cost in costs]
    return "\n".join(lines)


BENCHMARK = Benchmark(
    "--trace",
    __doc__,
    lambda options: measure(options.repeat),
    table,
    {"--repeat": {"type": positive, "default": 5, "help": "runs of each kernel; the fastest counts"}},
)
