"""The least time that a launch can take on a GPU, resource by resource, from what an X-ray has counted.

Each resource has a rate that it cannot exceed and an amount of work that the launch cannot avoid. Their quotient is a
lower bound on the launch's time, and the largest of the bounds says what limits the kernel. Real kernels take longer:
of what they wait for, only a block's first load is known (limits_launch.py).

DRAM: each sector that is read before the launch writes it comes from DRAM once. The L2 cache is taken to be cold when
the first launch of a report begins; in later ones it may hold as much as fits into it. Of what is written, only what
exceeds the L2 cache has to leave it before the launch ends.
L2: each sector that is read or written crosses between the L2 cache and the SMs once. Tiles of TMA, which pass by the
L1 cache, enter an SM each time that it asks for them; but SMs that ask for the same are served together.
L1 and shared memory: an SM moves 128 bytes a cycle between its registers and its L1 cache or shared memory, one
instruction at a time; a cp.async counts as one cycle. The counts are the source's, which nvcc may compile to fewer
accesses: with `sass=True` they are those of its machine code, and only then a bound.
Tensor cores: the products of wmma, mma.sync and wgmma, by the type of their factors.
Of all that is done in an SM: a block runs on one SM, so where there are more blocks than SMs, some SM runs several of
them; if all make the same requests, it takes that many times as long as one block. A function that asks how many SMs
there are may size its grid by that: `xray(..., gpu="h200")` answers as that GPU would, and else all SMs are taken to
share the work.
Instructions: with `sass=True`, those of the machine code that warps issue, and how many of them each unit executes
(limits_issue.py). Without it, only the special functions are known, from the source: one result of an intrinsic such as
__expf or of PTX such as ex2.approx is one of a special-function unit. nvcc may compute only once what is asked twice.
Atomics: the L2 cache updates a word of memory at most once a cycle; the lanes of a warp that update it count as one.
Arithmetic: as many operations as the caller says that the work needs.
"""

from collections.abc import Mapping
from functools import partial

from kernel_xray.report.facts import CP_ASYNC, NOT_CORRECTED, Facts, Launch, Line, Products
from kernel_xray.report.gpu_models import GPU, find
from kernel_xray.report.limits_issue import SPECIAL, issued
from kernel_xray.report.limits_launch import launching
from kernel_xray.report.limits_share import (
    SHAPES,
    alike,
    busy,
    has_its_grid,
    most_blocks,
    of_sample,
    scale,
    share,
    tail,
    used,
)
from kernel_xray.report.limits_table import LaunchLimits, Limit, Limits
from kernel_xray.report.text import count_text

_SECTOR, _PORT = 32, 128  # bytes; that an SM of Hopper takes in a cycle, by ncu 2025.3's peak of its crossbar's port
_WAYS = ("load", "store")
# Why a limit is not a bound.
_SOURCE = "counted in the source"


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
    for i, launch in enumerate(report.launches):
        known = [each for each in launch.products if each.dtype in model.flops]
        each = [_dram(launch, model, warm=i > 0), *_l2(launch, model, report), *_on_chip(launch, model, report)]
        each += [_tensor(launch, model, products) for products in known]
        of_code = issued(launch, model, report)
        each += [
            *(of_code or _special(launch, model)),
            *_atomics(launch, model),
            *launching(launch, model, report, warm=i > 0),
        ]
        each += [
            Limit(f"arithmetic, {dtype}", number / model.flops[dtype], f"{number:.4g} operations")
            for dtype, number in (flops or {}).items()
        ]
        unknown = ["L2"] * (not model.l2_bytes_per_second)
        unknown += [f"tensor cores, {each.dtype}" for each in launch.products if each not in known]
        unknown += ["lines that are not corrected"] * any(NOT_CORRECTED in line.nvcc for line in report.lines)
        unknown += [*["the start of a launch"] * (not model.launch_seconds), "latency", "barriers"]
        unknown += [*["other instructions, float32 among them"] * (not of_code), "the last wave"]
        found.append(LaunchLimits(launch, tuple(sorted(each, key=lambda limit: -limit.seconds)), tuple(unknown)))
    return Limits(model, tuple(found))


def _touched(launch: Launch) -> tuple[float, float]:
    """Bytes read and written. Blocks that read the same memory cannot read more than there is of it."""
    read = min(launch.sectors_read * scale(launch), max(launch.sectors_readable, launch.sectors_read))
    return read * _SECTOR, launch.sectors_written * scale(launch) * _SECTOR


def _dram(launch: Launch, gpu: GPU, warm: bool) -> Limit:
    read, written = _touched(launch)
    coming = max(read - gpu.l2_bytes, 0.0) if warm else read
    leaving = max(written - gpu.l2_bytes, 0.0)
    part = f"{_bytes(coming)} of " if warm else ""
    work = f"{part}{_bytes(read)} read, {_bytes(written)} written, {_bytes(leaving)} past the L2"
    return Limit("DRAM", (coming + leaving) / gpu.dram_bytes_per_second, work, of_sample(launch))


def _l2(launch: Launch, gpu: GPU, report: Facts) -> list[Limit]:
    """In the direction in which more moves: loads and stores may cross at the same time."""
    if not gpu.l2_bytes_per_second:
        return []
    crossing = max(_touched(launch))
    seconds, work = crossing / gpu.l2_bytes_per_second, f"{_bytes(crossing)} one way"
    tiles = _SECTOR * max(share(launch, report, report.lines, partial(_sectors, f"tile {way}")) for way in _WAYS)
    into_sms = tiles / (_PORT * busy(launch, gpu) * gpu.clock_hz)
    if into_sms > seconds:
        seconds, work = into_sms, f"{_bytes(tiles)} of tiles, into the SMs"
    shared = "" if alike(launch, report) or not tiles else SHAPES
    return [Limit("L2", seconds, work, of_sample(launch) or shared)]


def _sectors(kind: str, line: Line) -> int:
    return line.sectors if line.kind == kind else 0


def _on_chip(launch: Launch, gpu: GPU, report: Facts) -> list[Limit]:
    """The cycles in which the SMs' load and store units move data, spread evenly over all SMs."""
    copied = {(line.kernel, line.file, line.line) for line in report.lines if CP_ASYNC in line.nvcc}
    cycles = share(launch, report, report.lines, partial(_cycles, copied))
    if not cycles:
        return []
    estimate = of_sample(launch) if report.sass and alike(launch, report) else _SOURCE
    work = f"{cycles:,.0f} cycles of {count_text(used(launch, gpu), 'SM')}{tail(launch, gpu)}"
    return [Limit("L1 and shared memory", cycles / (busy(launch, gpu) * gpu.clock_hz), work, estimate)]


def _cycles(copied: set[tuple], line: Line) -> float:
    """Nothing of a line that nvcc made in an unknown manner; of cp.async, the requests: data pass by the registers."""
    if NOT_CORRECTED in line.nvcc:
        return 0
    return line.requests if (line.kernel, line.file, line.line) in copied and line.space == "global" else line.cycles


def _tensor(launch: Launch, gpu: GPU, products: Products) -> Limit:
    """All products at the rate of all SMs, or those of the SM that gets the most blocks."""
    rate = gpu.flops[products.dtype] / gpu.sms
    total = 2 * products.multiply_adds * scale(launch)
    blocks, sms = most_blocks(launch, gpu), used(launch, gpu)
    fullest = 2 * products.least * blocks if has_its_grid(launch, gpu) else 0
    more = f", {blocks} blocks on some SM" if fullest > total / sms else ""
    seconds = max(total / sms, fullest) / rate
    return Limit(f"tensor, {products.dtype}", seconds, f"{total:.4g} operations{more}", of_sample(launch))


def _special(launch: Launch, gpu: GPU) -> list[Limit]:
    if not launch.special:
        return []
    results = launch.special * scale(launch)
    work = f"{results:.4g} results of intrinsics"
    return [Limit("special functions", results / (SPECIAL * busy(launch, gpu) * gpu.clock_hz), work, _SOURCE)]


def _atomics(launch: Launch, gpu: GPU) -> list[Limit]:
    if not launch.most_updates:
        return []
    updates = launch.most_updates * scale(launch)
    return [Limit("atomics on one word", updates / gpu.clock_hz, f"{updates:,.0f} updates by warps", of_sample(launch))]


def _bytes(number: float) -> str:
    size, unit = next((s for s in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")) if number >= s[0]), (1, "bytes"))
    return f"{number / size:.4g} {unit}"
