"""The score of a run, by target, and its survivors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from helpers.upkeep.mutants import equivalents
from helpers.upkeep.mutants.record import Line


@dataclass
class Score:
    """How many mutants the checks killed, of those that build and are not listed as equivalent."""

    killed: int = 0
    survived: int = 0
    equivalent: int = 0
    not_built: int = 0

    def add(self, line: Line) -> None:
        if line.verdict == "killed":
            self.killed += 1
        elif line.verdict == "not built":
            self.not_built += 1
        elif equivalents.reason(line.file, line.operator, line.after):
            self.equivalent += 1
        else:
            self.survived += 1

    @property
    def share(self) -> float:
        """Killed mutants of those that count; 1 if there are none."""
        return self.killed / max(1, self.killed + self.survived) if self.killed + self.survived else 1.0

    def __str__(self) -> str:
        counted = f"{self.killed}/{self.killed + self.survived} killed ({self.share:.1%})"
        return f"{counted}, {self.equivalent} equivalent, {self.not_built} not built"


def scores(lines: Iterable[Line], field: str) -> dict[str, Score]:
    """The scores by target or by operator: the name of the field of Line."""
    found: dict[str, Score] = {}
    for line in lines:
        found.setdefault(getattr(line, field), Score()).add(line)
    return found


def survivors(lines: Iterable[Line]) -> list[Line]:
    """The mutants that no check found and that are not listed as equivalent."""
    alive = (line for line in lines if line.verdict == "survived")
    return [line for line in alive if not equivalents.reason(line.file, line.operator, line.after)]


def table(lines: Iterable[Line]) -> Iterator[str]:
    """The lines of the summary: a score for each target and operator and for all, then the survivors."""
    lines = list(lines)
    for field in ("target", "operator"):
        found = scores(lines, field)
        width = max(map(len, found), default=0)
        yield from (f"{name:{width}}  {score}" for name, score in found.items())
        yield ""
    total = Score()
    for line in lines:
        total.add(line)
    yield f"all: {total}"
    alive = survivors(lines)
    if alive:
        yield "\nsurvivors:"
    for line in alive:
        yield f"{line.file}:{line.line} {line.operator}\n  - {line.before}\n  + {line.after}"
