"""Mutants that compute the same as the original: listed in equivalents.toml under their reason. They do not count.

An entry names a file in kernels/ and, for each operator, parts of the lines after the mutation, as the command prints
them. Its digest is that of all mutants with such a part: a line of the kernel that changes, or a new mutant with such a
part, makes the entry stale. tests/mutants/test_equivalents.py then shows the mutants, and the digest to write once each
has been found to be equivalent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.upkeep.mutants.mutation import Mutant
from kernel_xray.machine import toml

FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Entry:
    """Mutants of one file that are equivalent for one reason. `parts`: operator -> parts of changed lines."""

    file: str
    reason: str
    digest: str
    parts: Mapping[str, Sequence[str]]

    def covers(self, operator: str, after: str) -> bool:
        """Whether the entry is of a mutant by this operator with this changed line."""
        return any(part in after for part in self.parts.get(operator, ()))


def digest(mutants: Iterable[Mutant]) -> str:
    """Of operators and changed lines, before and after."""
    lines = sorted(f"{mutant.operator} {mutant.before} -> {mutant.after}" for mutant in mutants)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


@cache
def entries(path: Path = FILE) -> list[Entry]:
    """The list. Raises KeyError and toml.TOMLDecodeError for a malformed file."""
    return [
        Entry(file, reason, one["digest"], {operator: parts for operator, parts in one.items() if operator != "digest"})
        for reason, files in toml.loads(path.read_text(encoding="utf-8")).items()
        for file, one in files.items()
    ]


def reason(file: str, operator: str, after: str) -> str:
    """Why a mutant is equivalent; "" for one that is not listed."""
    return next((entry.reason for entry in entries() if entry.file == file and entry.covers(operator, after)), "")
