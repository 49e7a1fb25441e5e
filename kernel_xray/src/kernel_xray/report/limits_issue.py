"""The limits that nvcc's machine code shows: the issue of instructions, and the units that execute them.

Each of an SM's four schedulers issues an instruction of a warp a cycle at most. A unit with 16 lanes an SM takes two
cycles of every scheduler for a warp, and so on. issued.py has the fewest instructions that warps issue.

On Hopper, a product by mma.sync or wmma keeps a tensor core busy 1.5 times as long as the same product by wgmma: 6
cycles for one of 16 x 8 x 16 elements of 16 bits. Counts, reversals and searches of bits take the unit of the special
functions. Both were measured on an H100 with ncu 2025.3, November 2026: busy cycles of these units over their
instructions, in loops of nothing else and, of mma.sync, in all matrix products of this course.
"""

from collections.abc import Callable, Sequence

from kernel_xray.report.basic_blocks import ISSUE
from kernel_xray.report.facts import Facts, Launch
from kernel_xray.report.gpu_models import GPU
from kernel_xray.report.limits_share import SHAPES, alike, busy, of_sample, share, tail
from kernel_xray.report.limits_table import Limit

SPECIAL = 16  # results a cycle and SM: CUDA Programming Guide 13.0, 'Throughput of Native Arithmetic Instructions'
_INTEGER = 64  # as above: additions, comparisons, logical operations and shifts, of the capabilities below
_WITH_INTEGER = ("7.5", "8.0", "8.6", "8.9", "9.0")
_HOPPER = "9.0"
_MMA = 6  # cycles of a tensor core, of which each scheduler has one
_SCHEDULERS, _WARP = 4, 32
_OTHER = "counted in machine code for another GPU"


def issued(launch: Launch, gpu: GPU, report: Facts) -> list[Limit]:
    """A limit for each unit; none if no machine code was read."""
    hopper = gpu.capability == _HOPPER
    found = []
    for units, name, rate in (
        ((ISSUE,), "issue", _SCHEDULERS * _WARP),
        (("float32",), "float32 arithmetic", _lanes(gpu, "float32")),
        (("float64",), "float64 arithmetic", _lanes(gpu, "float64")),
        (("integer",), "integer arithmetic", _INTEGER if gpu.capability in _WITH_INTEGER else 0),
        (("special", "bits") if hopper else ("special",), "special functions", SPECIAL),
        (("mma",), "tensor, mma.sync", _SCHEDULERS * _WARP / _MMA if hopper else 0),
    ):
        number = share(launch, report, report.issued, _of(units))
        if number and rate:
            cycles = number * _WARP / rate
            seconds = cycles / (busy(launch, gpu) * gpu.clock_hz)
            work = f"{number:,.0f} instructions of warps{tail(launch, gpu)}"
            found.append(Limit(name, seconds, work, _why_an_estimate(launch, gpu, report)))
    return found


def _lanes(gpu: GPU, dtype: str) -> float:
    """Results a cycle and SM; a multiplication and an addition are one."""
    return gpu.flops.get(dtype, 0.0) / (2 * gpu.sms * gpu.clock_hz)


def _of(units: Sequence[str]) -> Callable:
    return lambda record: record.number if record.unit in units else 0


def _why_an_estimate(launch: Launch, gpu: GPU, report: Facts) -> str:
    if report.sass.rstrip("a") != "sm_" + gpu.capability.replace(".", ""):
        return _OTHER
    return of_sample(launch) if alike(launch, report) else SHAPES
