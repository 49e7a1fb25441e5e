"""The students' copy of the course: a folder that is a git repository of one commit, and the same as a .zip.

What goes in is listed here; everything else stays out: solutions, tests and their wrong answers, the rooms that only
authors and instructors need, recorded work in progress. The same course and choice give the same bytes.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbformat
import yaml

from helpers.pages.notebooks.rules import to_text
from helpers.paths import NOTEBOOKS, ROOT
from helpers.practice import registry, starters
from helpers.practice.cells import named_in
from helpers.teaching.handout.assignments import Course
from helpers.teaching.handout.outlines import outline
from helpers.teaching.handout.readme import readme

TOP = (  # files beside helpers/
    "LICENSE", "pyproject.toml", "constraints.txt", "environment.yml",
    "hashes/pypi.txt", "hashes/pytorch_cpu.txt",
    "kernel_xray/pyproject.toml", "kernel_xray/README.md", "kernel_xray/LICENSE",
)  # fmt: skip
FOLDERS = ("helpers", "kernels", "kernel_xray/src", "results")
LEFT_OUT = {  # folders within them
    "helpers/pages/front", "helpers/teaching/handout", "helpers/upkeep/mutants", "helpers/upkeep/validation",
    "kernels/solutions", "kernels/template/build",
}  # fmt: skip
TARGETS = ("help", "setup", "lab", "clean", "distclean")  # of the course's Makefile
CHECK = """check: setup ## check your answer to an exercise: make check NAME=roll
	@$(PY) -m helpers check $(NAME)

points: setup ## count the points of your answers: make points FILE=assignments/week_1.yml
	@$(PY) -m helpers grade . --single --trust --points $(FILE) --out build/points
"""
ASSIGNMENTS = "assignments"  # the folder of the files of points
WHEN = "2000-01-01T00:00:00+0000"  # of the commit and in the archive: neither says when it was made
AUTHOR = "The Kernel Ladder"


def write(course: Course, folder: Path) -> None:
    """Writes the students' copy to `folder`, which is made, or emptied if it is an earlier release."""
    if folder.exists():
        if not (folder / ASSIGNMENTS).is_dir() and any(folder.iterdir()):
            raise FileExistsError(f"{folder} holds something else than a release; name another folder")
        shutil.rmtree(folder)
    for name, text in contents(course):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def contents(course: Course) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file of the students' copy."""
    for name in TOP:
        yield name, (ROOT / name).read_bytes()
    for top in FOLDERS:
        for path in _files(ROOT / top):
            yield path.relative_to(ROOT).as_posix(), path.read_bytes()
    for name in course.exercises:
        exercise = registry.find(name)
        yield exercise.starter.relative_to(ROOT).as_posix(), registry.read(name).starter.encode()
        marked = exercise.solution.read_text(encoding="utf-8")
        yield f"kernels/outlines/{exercise.solution.name}", outline(marked).encode()
    for lesson in course.lessons:
        for path in sorted(NOTEBOOKS.glob(f"{lesson}_*.ipynb")):
            yield f"notebooks/{path.name}", notebook(path, course.exercises).encode()
    for assignment in course.assignments:
        content = yaml.safe_dump(assignment.for_correctness(), sort_keys=False, allow_unicode=True)
        yield f"{ASSIGNMENTS}/{assignment.name}.yml", content.encode()
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8")
    yield ".gitignore", ignored.replace("/my_lessons/\n", f"{starters.RECORD}\n").encode()  # students commit answers
    yield "Makefile", makefile((ROOT / "Makefile").read_text(encoding="utf-8")).encode()
    yield "README.md", readme(course).encode()
    workflow = (Path(__file__).parent / "templates" / "github_points.yml").read_text(encoding="utf-8")
    yield ".github/workflows/points.yml", workflow.encode()


def notebook(path: Path, exercises: tuple[str, ...]) -> str:
    """A lesson with only these exercises. Outputs of exercises, which unfold a solution, are removed."""
    lesson = nbformat.read(path, as_version=4)
    kept: list[nbformat.NotebookNode] = []
    for cell in lesson.cells:
        name = named_in(cell.source)
        if name is not None and name not in exercises:
            kept.pop()  # its specification
            continue
        if cell.cell_type == "code" and (name is not None or "solution(" in cell.source):
            cell.outputs, cell.execution_count = [], None
        kept.append(cell)
    lesson.cells = kept
    return to_text(lesson)


def makefile(text: str) -> str:
    """The course's Makefile with only the targets that students need, and two of their own."""
    kept = []
    for block in text.split("\n\n"):
        rules = [line.split(":")[0] for line in block.splitlines() if "## " in line and line[:1].isalpha()]
        if all(rule in TARGETS for rule in rules):
            kept.append(block)
    joined = re.sub(r"^\.PHONY:.*$", f".PHONY: {' '.join(TARGETS)} check points", "\n\n".join(kept), flags=re.M)
    named = "#   NAME=EXERCISE             the exercise that `make check` checks"
    return re.sub(r"^#   TESTS=all .*$", named, joined, flags=re.M).rstrip() + f"\n\n{CHECK}"


def commit(folder: Path, title: str, archive: Path) -> None:
    """Makes the folder a git repository of one commit on the branch main, and writes that as a .zip, in one folder.

    Reads no configuration of the user's.
    """
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
           for key, value in (("NAME", AUTHOR), ("EMAIL", "classroom@example.com"), ("DATE", WHEN))}  # fmt: skip
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**outside, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "TZ": "UTC"}
    for arguments in (
        ["init", "--quiet", "--initial-branch=main", "--template="],
        ["add", "--all", "--force"],
        ["commit", "--quiet", "--no-verify", f"--message={title}"],
        ["archive", f"--output={archive.absolute()}", f"--prefix={folder.name}/", "HEAD"],
    ):
        done = subprocess.run(["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"git {arguments[0]} in {folder} failed: {done.stderr.strip()}")


def _files(folder: Path) -> Iterator[Path]:
    """Regular files that belong to the course, in a fixed order."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") or part == "__pycache__" or part.endswith(".egg-info") for part in parts)
        left_out = hidden or any(path.is_relative_to(ROOT / folder) for folder in LEFT_OUT)
        if path.is_file() and not path.is_symlink() and not left_out:
            yield path
