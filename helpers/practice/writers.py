"""Which thread wrote which element, in words: the map around a wrong element, and a race as a beginner sees it."""

import re
from dataclasses import replace

import numpy as np
import torch

from kernel_xray.report.facts import FaultRecord, Index, Writer
from kernel_xray.report.report import Report

AROUND = 2  # elements shown on either side of the first wrong one
_OWN = "which of them should own it?"
_RACE = re.compile(
    r"a (?P<now>write|read) (?:to|of) (?P<name>\w+) \(.*\) races with the (?P<before>write|read) by thread "
    r"(?P<thread>\(\d+, \d+, \d+\)) of (?P<block>the same block|block \(\d+, \d+, \d+\))"
)


def map_of_writers(report: Report, output: str, like: torch.Tensor, index: tuple[int, ...]) -> str:
    """Lines that say who wrote the elements of `output` around `index`; "" if no thread wrote anything to it.

    like   a tensor of the output's shape and dtype
    """
    if not any(_name(writer) == output for writer in report.writers):
        return ""
    at = int(np.ravel_multi_index(index, like.shape))
    lines: list[str] = []
    for flat in range(max(0, at - AROUND), min(like.numel(), at + AROUND + 1)):
        by = _writer(report, output, flat, like.element_size())
        label = "written by" if not lines else ""
        mark = "  <- the first wrong one" if flat == at else ""
        place = ", ".join(map(str, np.unravel_index(flat, like.shape)))
        lines.append(f"  {label:<10} [{place}]: {_who(report, by)}{mark}")
    return "\n".join(lines)


def writer_of(report: Report, output: str, like: torch.Tensor, index: tuple[int, ...]) -> Writer | None:
    """The last write of the element `index` of `output`, and of it alone; None if no thread wrote it."""
    at, size = int(np.ravel_multi_index(index, like.shape)), like.element_size()
    found = _writer(report, output, at, size)
    return found and replace(found, offset=at * size, size=size)


def _writer(report: Report, output: str, flat: int, size: int) -> Writer | None:
    wrote = (w for w in report.writers if _name(w) == output and w.offset <= flat * size < w.offset + w.size)
    return next(wrote, None)


def in_plain_words(fault: FaultRecord, report: Report) -> FaultRecord:
    """A race between writes of two blocks with what happened in front: which threads write the same element."""
    found = _RACE.match(fault.message) if fault.kind == "race" else None
    if not found or (found["now"], found["before"]) != ("write", "write"):
        return fault
    other_block = fault.block if found["block"] == "the same block" else _index(found["block"])
    sides = [(fault.block, fault.thread), (other_block, _index(found["thread"]))]
    what = found["name"] + _element(report, found["name"], sides)
    (block, thread), (other, second) = sorted(sides)
    if thread == second:
        words = (
            f"thread {_short(thread)} of blocks {_short(block)} and {_short(other)} both write {what}: does the index "
            "count the blocks before?"
        )
    elif block == other:
        words = f"threads {_short(thread)} and {_short(second)} of one block both write {what}: {_OWN}"
    else:
        one, two = (f"thread {_short(t)} of block {_short(b)}" for b, t in sorted(sides))
        words = f"{one} and {two} both write {what}: {_OWN}"
    return replace(fault, message=f"{words} ({found[0]})")


def _element(report: Report, name: str, sides: list[tuple[Index, Index]]) -> str:
    """`[0]` if the two threads wrote last to only one place of the tensor, or if only one was written; else ""."""
    numbers = {_numbers(report, *side) for side in sides}
    written = [writer for writer in report.writers if _name(writer) == name]
    mine = [writer for writer in written if (writer.block, writer.thread) in numbers]
    places = {writer.offset // writer.size for writer in mine or written}
    return f"[{places.pop()}]" if len(places) == 1 else ""


def _numbers(report: Report, block: Index, thread: Index) -> tuple[int, int]:
    """The block's number in the grid of the last launch, and the thread's in its block."""
    grid, size = report.launches[-1].grid, report.launches[-1].block
    return _flat(block, grid), _flat(thread, size)


def _flat(index: Index, extent: Index) -> int:
    return (index[2] * extent[1] + index[1]) * extent[0] + index[0]


def _who(report: Report, writer: Writer | None) -> str:
    if writer is None:
        return "no thread"
    launch = next((one for one in report.launches if one.kernel == writer.kernel), report.launches[-1])
    block, thread = _three(writer.block, launch.grid), _three(writer.thread, launch.block)
    kernels = {one.kernel for one in report.launches}
    return f"block {_short(block)}, thread {_short(thread)}" + (f" of {writer.kernel}" if len(kernels) > 1 else "")


def _three(number: int, extent: Index) -> Index:
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])


def _index(text: str) -> Index:
    x, y, z = map(int, re.findall(r"\d+", text))
    return x, y, z


def _short(index: Index) -> str:
    """`3`, `(3, 1)` or `(3, 1, 2)`."""
    x, y, z = index
    return str(x) if y == z == 0 else f"({x}, {y})" if z == 0 else f"({x}, {y}, {z})"


def _name(writer: Writer) -> str:
    """`out` of `out (257 float32)`."""
    return writer.name.partition(" (")[0]
