"""The least time that a launch can take on a GPU, resource by resource, from what an X-ray has counted.

Each resource has a rate that it cannot exceed and an amount of work that the launch cannot avoid. Their quotient is a
lower bound on the launch's time, and the largest of the bounds says what limits the kernel. Real kernels take longer:
nothing here knows how long a load takes to return, how many instructions are issued or how full the last wave is.

DRAM: each sector that is read before the launch writes it comes from DRAM once, since the L2 cache is taken to be cold;
of what is written, only what exceeds the L2 cache has to leave it before the launch ends.
L1 and shared memory: an SM moves 128 bytes a cycle between its registers and its L1 cache or shared memory, one
instruction at a time. The counts are the source's, which nvcc may compile to fewer accesses: with `sass=True` they are
those of its machine code, and only then a bound.
Arithmetic: as many operations as the caller says that the work needs.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_xray.report.facts import Facts, Launch, Line
from kernel_xray.report.gpu_models import GPU, find
from kernel_xray.report.text import size_text

_SECTOR = 32  # bytes
_PATH = 128 // _SECTOR  # sectors a cycle and SM
_NOT_COUNTED = "the latency of loads, instructions, L2 traffic, atomics, the last wave"


@dataclass(frozen=True)
class Limit:
    """What one resource costs a launch at least."""

    resource: str
    seconds: float
    work: str  # how much, in words
    is_bound: bool = True  # False: the work is the source's, or scaled from a sample of blocks


@dataclass(frozen=True)
class LaunchLimits:
    """The limits of one launch, the largest first."""

    launch: Launch
    limits: tuple[Limit, ...]

    @property
    def bound(self) -> Limit | None:
        """The largest that is a bound: the launch takes this long at least. None if no count is whole."""
        return next((limit for limit in self.limits if limit.is_bound), None)

    def __str__(self) -> str:
        parts = [f"{self.launch.kernel}<<<{size_text(self.launch.grid)}, {size_text(self.launch.block)}>>>"]
        for limit in self.limits:
            mark = "*" if limit is self.bound else " " if limit.is_bound else "~"
            parts.append(f"{mark} {limit.resource:<20}{limit.seconds * 1e6:>11.3f} us  {limit.work}")
        return "\n".join(parts)


@dataclass(frozen=True)
class Limits:
    """The limits of all launches of a report on one GPU; as text, a table."""

    gpu: GPU
    launches: tuple[LaunchLimits, ...]

    def __str__(self) -> str:
        parts = [f"At least, on an {self.gpu.name} with a cold L2 cache (*: the bound, ~: an estimate)"]
        for text, number in Counter(map(str, self.launches)).items():
            parts.append(text if number == 1 else text.replace("\n", f", {number} times\n", 1))
        return "\n".join([*parts, f"Not counted: {_NOT_COUNTED}."])


def limits(report: Facts, gpu: str, flops: Mapping[str, float] | None = None) -> Limits:
    """The limits of each launch of a report.

    gpu     such as "h200"; ValueError for an unknown one, with those that are known
    flops   operations that the work needs, by the type of its factors: {"bfloat16": 2 * m * n * k}; a multiplication
            and an addition are two. Only for a report of one launch
    """
    model = find(gpu)
    if flops and len(report.launches) != 1:
        raise ValueError(f"flops are of one launch; the report has {len(report.launches)}")
    for dtype in flops or ():
        if dtype not in model.flops:
            raise ValueError(f"flops has {dtype!r}; the {model.name} has {', '.join(model.flops)}")
    found = []
    for launch in report.launches:
        each = [_dram(launch, model), *_on_chip(launch, model, report)]
        each += [
            Limit(f"arithmetic, {dtype}", number / model.flops[dtype], f"{number:.4g} operations")
            for dtype, number in (flops or {}).items()
        ]
        found.append(LaunchLimits(launch, tuple(sorted(each, key=lambda limit: -limit.seconds))))
    return Limits(model, tuple(found))


def _dram(launch: Launch, gpu: GPU) -> Limit:
    """A sample is scaled; blocks that read the same memory cannot read more than there is of it."""
    scale = launch.blocks / launch.traced_blocks if launch.traced_blocks else 0
    read = min(launch.sectors_read * scale, max(launch.sectors_readable, launch.sectors_read)) * _SECTOR
    written = launch.sectors_written * scale * _SECTOR
    leaving = max(written - gpu.l2_bytes, 0.0)
    work = f"{_bytes(read)} read, {_bytes(written)} written, {_bytes(leaving)} past the L2"
    return Limit("DRAM", (read + leaving) / gpu.dram_bytes_per_second, work, _unscaled(launch))


def _unscaled(launch: Launch) -> bool:
    """Counts of a trace that ended early are lower bounds too; those of a sample are scaled, and may be too high."""
    return launch.traced_blocks == launch.blocks


def _on_chip(launch: Launch, gpu: GPU, report: Facts) -> list[Limit]:
    """The cycles in which the SMs' load and store units move data, spread evenly over all SMs."""
    same = [each for each in report.launches if each.kernel == launch.kernel]  # whose counts are in one
    traced = sum(each.traced_blocks for each in same)
    cycles = sum(_cycles(line) for line in report.lines if line.kernel == launch.kernel)
    if not cycles or not traced:
        return []
    cycles *= launch.blocks / traced
    alike = len({(each.grid, each.block) for each in same}) == 1  # else each has its own share
    is_bound = bool(report.sass) and alike and _unscaled(launch)
    sms = min(gpu.sms, launch.blocks)
    work = f"{cycles:,.0f} cycles of {sms} SM{'s' * (sms > 1)}"
    return [Limit("L1 and shared memory", cycles / (sms * gpu.clock_hz), work, is_bound)]


def _cycles(line: Line) -> float:
    """TMA moves tiles without an SM's load and store units."""
    if line.space == "shared":
        return line.wavefronts
    return 0 if line.kind.startswith("tile") else max(line.requests, line.ideal_sectors / _PATH)


def _bytes(number: float) -> str:
    size, unit = next((s for s in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")) if number >= s[0]), (1, "bytes"))
    return f"{number / size:.4g} {unit}"
