"""What the text of an exercise asks of a call's launches beside its result: counts of a traced run, never its source.

Bounds are generous: an answer may read an element twice, or move several in one access. What they refuse is work that
is not shared out: one thread that does everything, no tiles, one part of several that does all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from helpers.practice.case_inputs import counted

if TYPE_CHECKING:
    from kernel_xray.report.report import Launch, Line, Report

_BYTES_A_CYCLE = 128  # of an SM's load and store units


@dataclass(frozen=True)
class Launched:
    """What one launch must be. Counts are of accesses to global memory, by thread; 0 asks for nothing."""

    storing: int = 0  # at least so many threads store
    loading: int = 0  # and load
    loads: int = 0  # at most, by one thread
    reads: int = 0  # at most, by all threads together
    atomics: bool = True  # whether atomic updates are allowed
    shared: int = 0  # at most, accesses to shared memory by all threads together
    tiles: bool = False  # whether shared memory must be used
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    bytes: int = 0  # that any kernel for this moves; this one may be busy with `share` times as much
    share: float = 1.2


Asked = Callable[..., Sequence[Launched]]  # the inputs of a case -> its launches, in order


def each(elements: int, per_thread: int = 8) -> list[Launched]:
    """One launch whose threads own at most `per_thread` elements each; without elements there is none."""
    return [Launched(storing=-(-elements // per_thread))] if elements else []


def each_element(*inputs: object) -> list[Launched]:
    """One launch that shares out the elements of the first tensor among the inputs."""
    return each(next(x.numel() for x in inputs if isinstance(x, torch.Tensor)))


def near_bound(*inputs: object, per_thread: int) -> list[Launched]:
    """As `each`, and the SMs' load and store units are busy for little longer than any kernel's: bytes / 128 cycles.

    The result is like the first tensor. Of few elements nothing is asked: a request of a warp holds more.
    """
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    moved = sum(x.nbytes for x in (*tensors, tensors[0]))
    moved = moved if moved >= 8 * _BYTES_A_CYCLE else 0
    return [replace(launched, bytes=moved) for launched in each(tensors[0].numel(), per_thread)]


def row_by_block(x: torch.Tensor, per_thread: int, loads: int = 0, shared: int = 0) -> list[Launched]:
    """A block of 256 threads for each row of x, whose elements its threads share."""
    rows, columns = x.shape
    loading = rows * (min(columns, 256) // per_thread)
    return [Launched(loading=loading, loads=loads, shared=shared, atomics=False)] if rows else []


def complete(report: Report) -> bool:
    """Whether the traced blocks were counted to their ends. If not, counts show no waste and no idle thread."""
    return not report.cut


def missing(report: Report, asked: Sequence[Launched]) -> str:
    """What the launches of a call lack, or ""."""
    found = report.launches
    if len(found) != len(asked):
        return _wrong_number(found, len(asked))
    return next((problem for pair in zip(found, asked, strict=True) if (problem := _wrong(report, *pair))), "")


def _wrong_number(found: Sequence[Launch], asked: int) -> str:
    if not found:
        return "no kernel was launched: the result was computed elsewhere, or kept from an earlier call"
    times = Counter(launch.kernel for launch in found)
    names = ", ".join(f"{name} {count} times" if count > 1 else name for name, count in times.items())
    return f"the call launches {counted(len(found), 'kernel')} ({names}), where {asked or 'none'} would do"


def _wrong(report: Report, launch: Launch, asked: Launched) -> str:
    kernel, size = launch.kernel, launch.block[0] * launch.block[1] * launch.block[2]
    for what, extent, wanted in (("blocks", launch.grid, asked.grid), ("threads a block", launch.block, asked.block)):
        if wanted and extent != wanted:
            return f"{kernel} is launched with {_extent(extent)} {what}, where the caller asked for {_extent(wanted)}"
    lines = [line for line in report.lines if line.kernel == kernel]
    if launch.traced_blocks == launch.blocks and complete(report):  # else only some of its work was counted
        all_threads = launch.blocks * size
        for does, got, least in (("writes", launch.storing, asked.storing), ("reads", launch.loading, asked.loading)):
            if got < min(least, all_threads):
                return (
                    f"in {kernel}, only {got:,} of {counted(all_threads, 'thread')} {does if got == 1 else does[:-1]} "
                    f"global memory, where at least {least:,} should: share the work out among the threads"
                )
        reads = round(sum(x.requests * x.active_lanes for x in lines if (x.space, x.kind) == ("global", "load")))
        if asked.reads and reads > asked.reads:
            return (
                f"{kernel} reads global memory {reads:,} times, where {asked.reads:,} would do: copy what several "
                "threads need to shared memory, and read it from there"
            )
        shared = round(sum(line.requests * line.active_lanes for line in lines if line.space == "shared"))
        if asked.shared and shared > asked.shared:
            return (
                f"the threads of {kernel} access shared memory {shared:,} times, where at most {asked.shared:,} would "
                "do: let the lanes of a warp exchange their values by shuffles"
            )
        if problem := asked.bytes and _far_from_bound(kernel, lines, asked):
            return problem
    if asked.loads and launch.most_loads > asked.loads:
        return (
            f"in {kernel}, one thread loads {launch.most_loads:,} times from global memory, where {asked.loads:,} "
            "would do: share the work out among the threads and blocks"
        )
    if asked.tiles and complete(report) and not any(line.space == "shared" for line in lines):
        return f"{kernel} does not use shared memory: copy tiles there, and read them from there"
    updates = [line for line in lines if (line.space, line.kind) == ("global", "atomic")]
    if updates and not asked.atomics:
        return f"{kernel} updates global memory by atomic functions, in line {updates[0].line}; the text asks for none"
    return ""


def _far_from_bound(kernel: str, lines: Sequence[Line], asked: Launched) -> str:
    """A bound of any kernel, so an answer is told how far it is from what can be reached; its ragged ends are free."""
    cycles, least = sum(line.cycles for line in lines), asked.bytes / _BYTES_A_CYCLE
    if cycles <= asked.share * least + 2 * len(lines):
        return ""
    line = max(lines, key=lambda line: line.cycles)
    return (
        f"{kernel} keeps the SMs' load and store units busy for {cycles:,.0f} cycles, where any kernel for this needs "
        f"{least:,.0f}: move each element once, and with each request of a warp {_BYTES_A_CYCLE} bytes or more. In "
        f"line {line.line}, a lane moves {line.size}"
    )


def _extent(size: tuple[int, int, int]) -> str:
    x, y, z = size
    return f"{x:,}" if y == z == 1 else f"{x} x {y}" if z == 1 else f"{x} x {y} x {z}"
