"""The learner's files, my_lessons/exercises/*: each begins as the starter of an exercise, made from its solution.

They are made when they are asked for. A file that the learner has changed is never overwritten; another is renewed when
its solution has changed. Git does not follow them: solving an exercise changes nothing that is committed, and a later
`git pull` never conflicts. `python -m helpers starters` makes them all.
"""

import argparse
import os
from contextlib import suppress
from pathlib import Path

from helpers.pages.notebooks import own_files
from helpers.paths import NOTEBOOKS
from helpers.practice import registry
from helpers.practice.registry import Exercise
from helpers.practice.verdict import Verdict

RECORD = ".starters.json"  # name of a file -> hash of the starter that was written


def exercises() -> list[Exercise]:
    """All exercises in the order of the lessons, each with a file for the learner's answer."""
    listed = registry.exercises()
    with suppress(OSError):  # where the course is installed read-only, the list is right all the same
        renew()
    return listed


def mine(name: str) -> Path:
    """The learner's file for an exercise. Raises UnknownExercise, and FileNotFoundError if it cannot be made."""
    path = registry.find(name).starter
    try:
        renew()
    except OSError as error:
        if not path.is_file():
            why = f"{error.strerror}; name a file of yours: python -m helpers check {name} FILE"
            raise FileNotFoundError(f"{path} cannot be made: {why}") from error
    return path


def renew() -> tuple[list[str], list[str]]:
    """The names of the files that it wrote, and of the learner's whose starter is newer. Raises OSError."""
    listed = registry.exercises()
    texts = {exercise.starter.name: registry.read(exercise.name).starter for exercise in listed}
    return own_files.renew(listed[0].starter.parent, texts, RECORD)


def unsolved(name: str, path: Path) -> Verdict | None:
    """The verdict on a file that is the starter still; None on any other. PyTorch is not needed for it.

    Raises UnknownExercise, and FileNotFoundError if there is no such file.
    """
    exercise, marked = registry.find(name), registry.read(name)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if not same(path.read_text(encoding="utf-8", errors="replace"), marked.starter):
        return None
    there = "a solution is" if registry.with_solutions() else "more are"
    hints = f"python -m helpers hint {name} shows a hint, and {there} in {_short(exercise.solution)}"
    return Verdict(name, "unsolved", f"{marked.task(_short(path))}; {hints}")


def same(text: str, starter: str) -> bool:
    """Whether two texts differ in white space alone."""
    return "".join(text.split()) == "".join(starter.split())


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def main(arguments: list[str]) -> int:
    """Makes the learner's files, or writes or checks the notebooks' cells. Returns 1 if --check finds a difference."""
    parser = argparse.ArgumentParser(
        prog="python -m helpers starters",
        description="Make the files of my_lessons/exercises/ that are not there, and renew those you have not changed.",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="write the cells that the lessons have of the exercises")
    action.add_argument("--check", action="store_true", help="exit with 1 if one of them differs from its solution")
    parser.add_argument("--notebooks", type=Path, default=NOTEBOOKS, help="the folder with the lessons")
    options = parser.parse_args(arguments)
    if options.write or options.check:
        from helpers.practice import cells  # with nbformat, which takes longer to import than the files to make

        return cells.write_or_check(options.notebooks, options.write)
    for name in renew()[1]:
        print(f"starters: there is a newer {name}; to get it, rename yours in my_lessons/exercises/")
    return 0
