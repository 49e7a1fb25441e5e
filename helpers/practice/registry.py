"""Which exercises there are: one for each file in kernels/solutions/."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from helpers.machine.paths import KERNELS
from helpers.practice.marks import Marked, parse

SUFFIXES = (".cu", ".py")  # of solutions: a kernel, or Python code beside one


class UnknownExercise(ValueError):
    """There is no exercise of that name. The message lists those that there are."""


class Exercise(NamedTuple):
    """An exercise, as `helpers.exercises()` lists it."""

    name: str
    lesson: str  # two digits, as notebooks are numbered
    title: str
    starter: Path
    solution: Path

    def __repr__(self) -> str:
        return f"<exercise {self.name} of lesson {self.lesson}: {self.title}>"


def exercises() -> list[Exercise]:
    """All exercises, in the order of the lessons. Raises RuntimeError if there are none, ValueError for a bad file."""
    found = [(read(path.stem), path) for path in sorted((KERNELS / "solutions").glob("*.*")) if path.suffix in SUFFIXES]
    if not found:
        raise RuntimeError(f"no exercises: {KERNELS / 'solutions'} holds no file; `git checkout kernels` restores it")
    found.sort(key=lambda pair: (pair[0].lesson, pair[0].number))
    return [
        Exercise(path.stem, marked.lesson, marked.title, KERNELS / "exercises" / path.name, path)
        for marked, path in found
    ]


def find(name: str) -> Exercise:
    """The exercise `name`. Raises UnknownExercise."""
    listed = {exercise.name: exercise for exercise in exercises()}
    if name not in listed:
        raise UnknownExercise(f"there is no exercise {name!r}; there are {', '.join(listed)}")
    return listed[name]


def read(name: str) -> Marked:
    """What the solution file of exercise `name` holds. Raises UnknownExercise."""
    for suffix in SUFFIXES:
        path = KERNELS / "solutions" / f"{name}{suffix}"
        if path.is_file():
            return _read(path, path.stat().st_mtime_ns)
    raise UnknownExercise(f"there is no exercise {name!r}; there are {', '.join(e.name for e in exercises())}")


@lru_cache(maxsize=256)
def _read(path: Path, modified: int) -> Marked:
    marked = parse(path.read_text(encoding="utf-8"), f"kernels/solutions/{path.name}")
    if marked.name != path.stem:
        raise ValueError(f"kernels/solutions/{path.name}:1: the first line names {marked.name}")
    return marked
