"""The list of exercises: one for each file in kernels/solutions/.

A copy of the course for students has kernels/outlines/ in its place: the same files with nothing between the marks of a
solution (helpers/teaching/handout/outlines.py). They give the same starters, cells and hints.
"""

import difflib
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from helpers.paths import KERNELS, MY_LESSONS
from helpers.practice.marks import Marked, parse

SUFFIXES = (".cu", ".py")  # of solutions: a kernel, or the Python code beside one


def folder() -> Path:
    """Where the exercises are described: the solutions, or in a copy without them the outlines."""
    return KERNELS / ("solutions" if with_solutions() else "outlines")


def with_solutions() -> bool:
    """Whether this copy of the course has the solutions."""
    return (KERNELS / "solutions").is_dir() or not (KERNELS / "outlines").is_dir()


class UnknownExercise(ValueError):
    """There is no exercise of that name. The message suggests the nearest name, and lists the exercises."""

    def __init__(self, name: str):
        names = [exercise.name for exercise in exercises()]
        near = difflib.get_close_matches(name, names, 1)
        then = f"did you mean {near[0]}? The" if near else "the"
        super().__init__(f"there is no exercise {name!r}; {then} exercises are {', '.join(names)}")

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message alone."""
        return [f"{type(self).__name__}: {self}"]


class Exercise(NamedTuple):
    """An exercise, as `helpers.exercises()` lists it."""

    name: str
    lesson: str  # two digits, as notebooks are numbered
    title: str
    starter: Path  # the learner's file, which starters.py makes
    solution: Path  # or its outline, in a copy without solutions

    def __repr__(self) -> str:
        return f"<exercise {self.name} of lesson {self.lesson}: {self.title}>"


def exercises() -> list[Exercise]:
    """All exercises, in lesson order. Raises RuntimeError if there are none, ValueError for a malformed file."""
    paths = sorted(path for path in folder().glob("*.*") if path.suffix in SUFFIXES)
    found = [(_marked(path), path) for path in paths]
    if not found:
        raise RuntimeError(f"no exercises: {folder()} is empty; `git checkout kernels` restores it")
    found.sort(key=lambda pair: (pair[0].lesson, pair[0].number))
    return [_exercise(path, marked) for marked, path in found]


def find(name: str) -> Exercise:
    """The exercise `name`. Raises UnknownExercise."""
    path = _path(name)
    return _exercise(path, _marked(path))


def _exercise(path: Path, marked: Marked) -> Exercise:
    return Exercise(path.stem, marked.lesson, marked.title, MY_LESSONS / "exercises" / path.name, path)


def _path(name: str) -> Path:
    for suffix in SUFFIXES if name.isidentifier() else ():  # "../x" is a path, not a name
        path = folder() / f"{name}{suffix}"
        if path.is_file():
            return path
    raise UnknownExercise(name)


def following(name: str) -> Exercise | None:
    """The exercise after `name`, or None if it is the last. Raises UnknownExercise."""
    listed, here = exercises(), find(name)
    return next((after for one, after in pairwise(listed) if one.name == here.name), None)


def read(name: str) -> Marked:
    """The parsed solution file of exercise `name`. Raises UnknownExercise."""
    return _marked(_path(name))


def _marked(path: Path) -> Marked:
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _read(path: Path, modified: int) -> Marked:
    shown = f"kernels/{path.parent.name}/{path.name}"
    marked = parse(path.read_text(encoding="utf-8"), shown)
    if marked.name != path.stem:
        raise ValueError(f"{shown}:1: the first line names {marked.name}")
    return marked
