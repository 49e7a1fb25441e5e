"""What an exercise's text asks for beyond the values, counted in the X-ray of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from helpers.practice.traced_run import in_words

if TYPE_CHECKING:
    from kernel_xray.report.report import Report


RIGHT_BUT = "the result is right, but wasteful"


def at_once(size: int) -> Callable[[Report], str]:
    """A demand: at most half of the requests to global memory move fewer than `size` bytes per lane."""

    def look(report: Report) -> str:
        lines = [line for line in report.lines if line.space == "global"]
        narrow = [line for line in lines if line.size < size]
        if 2 * sum(line.requests for line in narrow) <= sum(line.requests for line in lines):
            return ""
        line = max(narrow, key=lambda line: line.requests)
        return (
            f"the result is right, but a thread should move {size} bytes in one access. In line {line.line}, "
            f"`{line.source}`, a {line.kind} moves {line.size}"
        )

    return look


def whole_sectors(report: Report) -> str:
    """A demand: no line takes more sectors or wavefronts than its bytes need."""
    return in_words(report.worst, RIGHT_BUT) if report.worst else ""


def at_most(most: int, kind: str, advice: str) -> Callable[[Report], str]:
    """A demand: all requests of one kind ("load", "store" or "atomic") to global memory are at most `most`."""

    def look(report: Report) -> str:
        found = sum(line.requests for line in report.lines if (line.space, line.kind) == ("global", kind))
        if found <= most:
            return ""
        return f"the result is right, but the warps make {found:,} {kind} requests, where {most:,} would do: {advice}"

    return look


def barriers_for_all(report: Report) -> str:
    """A demand: no thread has ended, or gone past a barrier, that the others of its block still wait at."""
    left = [remark for remark in report.remarks if remark.kind == "divergent-barrier"]
    return f"the result is right, but not every thread comes to each barrier:\n{left[0]}" if left else ""
