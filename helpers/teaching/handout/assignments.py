"""The instructor's choice, a YAML file such as helpers/teaching/handout/courses/four_weeks.yml:

    title: CUDA C++ in four weeks
    assignments:
      week_1:                          # a name of letters, digits and _
        title: Kernels and indices     # optional, by default the name
        opens: 2027-01-11              # optional; a date, or a date with a time: 2027-01-17 23:59
        due: 2027-01-17 23:59          # optional
        weight: 20                     # optional: this assignment's share of the course, by default its points
        efficiency: 0.25               # optional, as in a file of points
        exercises:                     # points by exercise, as in a file of points
          vector_scale: 10
          roll: {points: 20, efficiency: 0}

The students' copy gets the exercises named here and the lessons that they belong to, and lesson 00. `lessons: ["10"]`
adds others. An exercise belongs to one assignment.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from helpers.paths import NOTEBOOKS
from helpers.practice import registry
from helpers.teaching.classroom.points import PointsError, Scheme, mapping, scheme, understood
from helpers.teaching.handout.outlines import builds_upon

COURSES = Path(__file__).parent / "courses"  # ready-made
FIRST = "00"  # the lesson that shows how to work with the others


@dataclass(frozen=True)
class Assignment:
    """Exercises that are handed in together. `weight` is its share of the course, on any scale.

    points: the content of its file of points, as the instructor wrote it
    """

    name: str
    scheme: Scheme
    points: dict[str, Any]
    weight: float
    opens: datetime | None = None
    due: datetime | None = None

    def for_correctness(self) -> dict[str, Any]:
        """The same, with all points for correctness: a copy without solutions has nothing to compare waste with."""
        totals = {name: worth.total for name, worth in self.scheme.exercises.items()}
        return {"title": self.scheme.title, "exercises": totals}


@dataclass(frozen=True)
class Course:
    """All assignments in the order of the file, and the lessons that students need for them."""

    title: str
    assignments: tuple[Assignment, ...]
    lessons: tuple[str, ...]

    @property
    def exercises(self) -> tuple[str, ...]:
        return tuple(name for assignment in self.assignments for name in assignment.scheme.exercises)

    def share(self, assignment: Assignment) -> float:
        """The assignment's share of the course, from 0 to 1."""
        return assignment.weight / sum(one.weight for one in self.assignments)


def read(path: Path) -> Course:
    """The course in a file. Raises PointsError naming file, key and value, and what to write."""
    return understood(path, _course)


def _course(given: Any) -> Course:
    top = mapping(given, "the file", ("title", "assignments", "lessons"))
    listed = top.get("assignments")
    if not isinstance(listed, dict) or not listed:
        raise PointsError("assignments is missing or empty; write lines such as '  week_1:' below 'assignments:'")
    found = tuple(_assignment(name, content) for name, content in listed.items())
    owner: dict[str, str] = {}
    for assignment in found:
        for name in assignment.scheme.exercises:
            if name in owner:
                raise PointsError(f"{name} is in {owner[name]} and in {assignment.name}; an exercise is handed in once")
            owner[name] = assignment.name
    lessons = {registry.find(name).lesson for name in owner} | {FIRST} | set(_lessons(top.get("lessons", [])))
    return Course(_text(top.get("title", "The Kernel Ladder"), "title"), found, tuple(sorted(lessons)))


def _assignment(name: Any, given: Any) -> Assignment:
    where = f"assignments.{name}"
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w{0,39}", name, re.ASCII):
        raise PointsError(f"{where}: {name!r} names files; write up to 40 letters, digits and _, such as week_1")
    own = mapping(given, where, ("title", "opens", "due", "weight", "efficiency", "exercises"))
    given = {"title": name, **{key: own[key] for key in ("title", "efficiency", "exercises") if key in own}}
    try:
        found = scheme(given)
    except PointsError as error:
        raise PointsError(f"{where}: {error}") from None
    for exercise in found.exercises:
        if others := builds_upon(exercise):
            raise PointsError(
                f"{where}: {exercise} builds upon the solution of {others[0]}, which students do not get; leave it out"
            )
    opens, due = (
        _when(own.get("opens"), f"{where}.opens", time.min),
        _when(own.get("due"), f"{where}.due", time(23, 59)),
    )
    if opens and due and due <= opens:
        raise PointsError(f"{where}.due is {due}, which is not after opens, {opens}")
    weight = own.get("weight", found.total)
    if type(weight) not in (int, float) or not 0 < weight <= 1e6:
        raise PointsError(f"{where}.weight is {weight!r}; write a number above 0, such as 25")
    return Assignment(name, found, given, float(weight), opens, due)


def _when(given: Any, where: str, usual: time) -> datetime | None:
    """A date, at `usual`, or a date with a time. YAML reads the first as a date and the second as a text."""
    if given is None:
        return None
    if isinstance(given, datetime):
        return given.replace(tzinfo=None)
    if isinstance(given, date):
        return datetime.combine(given, usual)
    try:
        if not isinstance(given, str):
            raise ValueError
        return datetime.strptime(given, "%Y-%m-%d %H:%M")
    except ValueError:
        raise PointsError(f"{where} is {given!r}; write a date such as 2027-01-17, or 2027-01-17 23:59") from None


def _lessons(given: Any) -> list[str]:
    there = [path.name[:2] for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))]
    for number in given if isinstance(given, list) else [given]:
        if number not in there:
            raise PointsError(
                f'lessons: there is no lesson {number!r}; write a list such as ["{there[0]}", "{there[-1]}"]'
            )
    return list(given)


def _text(given: Any, where: str) -> str:
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise PointsError(f"{where} is {given!r}; write a text of one line")
    return given
