"""What is known of each mutant, as lines of JSON: written as verdicts come, read again to resume."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from helpers.upkeep.mutants.isolation import Result
from helpers.upkeep.mutants.mutation import Mutant


@dataclass(frozen=True)
class Line:
    """A mutant and its verdict."""

    key: str
    target: str
    file: str
    operator: str
    line: int
    before: str
    after: str
    verdict: str
    why: str
    seconds: float

    @classmethod
    def of(cls, target: str, mutant: Mutant, result: Result) -> Line:
        found = asdict(mutant)
        del found["text"]
        seconds = round(result.seconds, 1)
        return cls(key=mutant.key, target=target, **found, verdict=result.verdict, why=result.why, seconds=seconds)


def read(path: Path) -> dict[str, Line]:
    """The lines of a record by the mutants' keys. A line cut short, the last of a killed run, does not count."""
    lines = {}
    if path.is_file():
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = Line(**json.loads(text))
            except (ValueError, TypeError):
                continue
            lines[line.key] = line
    return lines


def append(path: Path, line: Line) -> None:
    """Adds a line. What a killed run left of its last line is ended first."""
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(asdict(line)).encode() + b"\n")
