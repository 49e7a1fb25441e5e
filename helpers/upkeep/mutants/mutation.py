"""The mutants of a source: what each mutation operator makes of each node of its syntax tree."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.upkeep.mutants import syntax
from helpers.upkeep.mutants.syntax import Edit

if TYPE_CHECKING:
    from tree_sitter import Node

Find = Callable[["Node"], Iterable[Edit]]


@dataclass(frozen=True)
class Operator:
    """A kind of mistake: what it does to a source, and where in it."""

    name: str
    sentence: str
    find: Find


@dataclass(frozen=True)
class Mutant:
    """A source with one mistake. `before` and `after` are the changed line, without indentation."""

    file: str  # in kernels/
    operator: str
    line: int
    before: str
    after: str
    text: str

    @property
    def key(self) -> str:
        """Names the mutant in a record: the same as long as its text is."""
        return hashlib.sha256(f"{self.file}\n{self.operator}\n{self.text}".encode()).hexdigest()[:16]

    def difference(self) -> str:
        """The changed line, before and after."""
        return f"{self.file}:{self.line} {self.operator}\n  - {self.before}\n  + {self.after}"


def mutants(
    file: str, text: str, operators: Iterable[Operator], region: tuple[int, int] | None = None
) -> Iterator[Mutant]:
    """Every mutant of a source by these operators, in the order of its lines; equal texts come once.

    region  the first and the last line, from 1, that may change; by default all
    """
    source, seen = text.encode(), {text}
    lines = source.split(b"\n")
    first, last = region or (1, len(lines))
    begin, end = (sum(len(line) + 1 for line in lines[:number]) for number in (first - 1, last))
    found = [
        (edit, operator)
        for node in syntax.nodes(source, begin, min(end, len(source)))
        for operator in operators
        for edit in operator.find(node)
    ]
    for edit, operator in sorted(found, key=lambda pair: (pair[0].start, pair[0].end, pair[1].name, pair[0].text)):
        changed = edit.applied(source).decode()
        if changed not in seen:
            seen.add(changed)
            yield Mutant(file, operator.name, *_changed_line(text, changed), changed)


def _changed_line(old: str, new: str) -> tuple[int, str, str]:
    """The number of the first line that differs, and what became of it; several changed lines are joined."""
    one, other = old.split("\n"), new.split("\n")
    same = _equal(one, other)  # nearly all lines are: the matcher takes the square of what is left
    behind = _equal(one[same:][::-1], other[same:][::-1])
    one, other = one[same : len(one) - behind], other[same : len(other) - behind]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            before, after = (" ".join(line.strip() for line in part).strip() for part in (one[a:b], other[c:d]))
            return same + a + 1, before, after
    raise ValueError("the texts are equal")


def _equal(one: list[str], other: list[str]) -> int:
    """How many lines are equal from the first on."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
