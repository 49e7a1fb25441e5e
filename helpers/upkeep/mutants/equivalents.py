"""Mutants that compute the same as the original: listed in equivalents.toml, each group with its reason.

A table names the file in kernels/, the operators, the reason, and the changed lines after the mutation, as the command
prints them. They do not count in the score.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.upkeep.mutants.mutation import Mutant

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Entry:
    """Mutants of one file that are equivalent for one reason."""

    file: str
    operators: tuple[str, ...]
    reason: str
    lines: tuple[str, ...]


@cache
def entries(path: Path = FILE) -> list[Entry]:
    """The list. Raises KeyError and tomllib.TOMLDecodeError for a malformed file."""
    found = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    return [
        Entry(one["file"], tuple(one["operators"]), " ".join(one["reason"].split()), tuple(one["lines"]))
        for one in found
    ]


def reason(file: str, operator: str, after: str) -> str:
    """Why a mutant is equivalent; "" for one that is not listed."""
    for entry in entries():
        if entry.file == file and operator in entry.operators and after in entry.lines:
            return entry.reason
    return ""


def reason_of(mutant: Mutant) -> str:
    """Why a mutant is equivalent; "" for one that is not listed."""
    return reason(mutant.file, mutant.operator, mutant.after)
