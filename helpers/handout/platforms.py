"""Files with which a platform hands out and grades the assignments of a course; templates/ has their texts."""

import string
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import yaml

from helpers.handout import notebooks_of
from helpers.handout.assignments import Course
from helpers.machine.paths import ROOT

TEMPLATES = Path(__file__).parent / "templates"
IDENTIFIER = "kernel_ladder"

Files = Iterator[tuple[str, str]]  # path below the platform's folder, and content


def filled(name: str, **values: str) -> str:
    """A template's text with each $word replaced. Raises KeyError for a word without a value."""
    return string.Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(values)


def points(course: Course, efficiency: bool = True) -> Files:
    """A file of points for each assignment."""
    for assignment in course.assignments:
        content = yaml.safe_dump(assignment.points_file(efficiency), sort_keys=False, allow_unicode=True)
        yield f"points/{assignment.name}.yml", content


def nbgrader(course: Course, out: Path) -> Files:
    """A course folder of nbgrader: its configuration, and the source of each assignment, without solutions."""
    yield from points(course)
    yield (
        "nbgrader_config.py",
        filled(
            "nbgrader_config.py",
            course=str(ROOT),
            identifier=IDENTIFIER,
            python=sys.executable,
            points=str((out / "points").absolute()),
        ),
    )
    for assignment in course.assignments:
        text = nbformat.writes(notebooks_of.for_nbgrader(assignment))
        yield f"source/{assignment.name}/{assignment.name}.ipynb", f"{text}\n"


def otter(course: Course, out: Path) -> Files:
    """A master notebook for `otter assign` for each assignment."""
    for assignment in course.assignments:
        text = nbformat.writes(notebooks_of.for_otter(assignment))
        yield f"{assignment.name}/{assignment.name}.ipynb", f"{text}\n"


PLATFORMS: dict[str, Callable[[Course, Path], Files]] = {
    "nbgrader": nbgrader,
    "otter": otter,
}


def write(name: str, course: Course, out: Path) -> Path:
    """Writes the files of a platform below `out`/NAME. Returns that folder."""
    folder = out / name
    for relative, content in PLATFORMS[name](course, folder):
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        if content.startswith("#!"):
            path.chmod(0o755)
    return folder
