"""The score of a run, by target, and its survivors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from helpers.upkeep.mutants import equivalents
from helpers.upkeep.mutants.record import Line


def verdict(line: Line) -> str:
    """The verdict of a line; "equivalent" for a survivor that is listed as such."""
    listed = line.verdict == "survived" and equivalents.reason(line.file, line.operator, line.after)
    return "equivalent" if listed else line.verdict


def score(lines: Iterable[Line]) -> str:
    """How many mutants the checks killed, of those that build and are not listed as equivalent."""
    found = Counter(map(verdict, lines))
    killed, counted = found["killed"], found["killed"] + found["survived"]
    share = killed / counted if counted else 1.0
    return f"{killed}/{counted} killed ({share:.1%}), {found['equivalent']} equivalent, {found['not built']} not built"


def survivors(lines: Iterable[Line]) -> list[Line]:
    """The mutants that no check found and that are not listed as equivalent."""
    return [line for line in lines if verdict(line) == "survived"]


def table(lines: Iterable[Line]) -> Iterator[str]:
    """The lines of the summary: a score for each target and operator and for all, then the survivors."""
    lines = list(lines)
    for field in ("target", "operator"):
        found: dict[str, list[Line]] = {}
        for line in lines:
            found.setdefault(getattr(line, field), []).append(line)
        width = max(map(len, found), default=0)
        yield from (f"{name:{width}}  {score(own)}" for name, own in found.items())
        yield ""
    yield f"all: {score(lines)}"
    alive = survivors(lines)
    if alive:
        yield "\nsurvivors:"
    for line in alive:
        yield f"{line.file}:{line.line} {line.operator}\n  - {line.before}\n  + {line.after}"
