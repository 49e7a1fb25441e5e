"""Files with which a platform hands out and grades the assignments of a course; templates/ has their texts."""

import json
import shutil
import string
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import yaml

from helpers.paths import ROOT
from helpers.practice import registry
from helpers.teaching.handout import kernelbot, notebooks_of, prairielearn_files
from helpers.teaching.handout.assignments import Course

TEMPLATES = Path(__file__).parent / "templates"
IDENTIFIER = "kernel_ladder"

Files = Iterator[tuple[str, str]]  # path below the platform's folder, and content


def filled(name: str, **values: str) -> str:
    """A template's text with each $word replaced. Raises KeyError for a word without a value."""
    return string.Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(values)


def nbgrader(course: Course, out: Path) -> Files:
    """A course folder of nbgrader: its configuration, and the source of each assignment, without solutions."""
    yield (
        "nbgrader_config.py",
        filled(
            "nbgrader_config.template",
            course=str(ROOT),
            identifier=IDENTIFIER,
            python=sys.executable,
            points=str((out.parent / "points").absolute()),
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


def gradescope(course: Course, out: Path) -> Files:
    """What Gradescope's image is built from, for each assignment: the students' copy, points, and two scripts.

    "Autograder Specifications", https://gradescope-autograders.readthedocs.io/en/latest/specs/ (read 2026-11-23). The
    scripts are at the root of the archive that is uploaded. The image holds no solutions, which an answer could read.
    """
    for assignment in course.assignments:
        yield f"{assignment.name}/setup.sh", filled("gradescope_setup.sh")
        yield f"{assignment.name}/run_autograder", filled("gradescope_run_autograder")
        yield f"{assignment.name}/points.yml", _yaml(assignment.for_correctness())


def prairielearn(course: Course, out: Path) -> Files:
    """A question for each exercise, an assessment for each assignment, and the image that grades them.

    "External grading", https://docs.prairielearn.com/externalGrading/, and the schemas infoQuestion.json and
    infoAssessment.json in apps/prairielearn/src/schemas of PrairieLearn's repository (read 2026-11-23).
    """
    yield "image/Dockerfile", filled("grader_Dockerfile")
    yield "serverFilesCourse/kernel_ladder/run.sh", filled("prairielearn_run.sh")
    for number, assignment in enumerate(course.assignments, 1):
        for name, worth in assignment.scheme.exercises.items():
            marked, starter = registry.read(name), registry.find(name).starter
            folder = f"questions/{name}"
            yield f"{folder}/info.json", _json(prairielearn_files.question(name))
            yield f"{folder}/question.html", prairielearn_files.page(name)
            yield f"{folder}/{starter.name}", marked.starter
            yield f"{folder}/tests/points.yml", _yaml({"exercises": {name: worth.total}})
        about = prairielearn_files.assessment(assignment, number)
        yield f"courseInstances/{IDENTIFIER}/assessments/{assignment.name}/infoAssessment.json", _json(about)


def slurm(course: Course, out: Path) -> Files:
    """A job array that checks the answers of a large class, and the job that counts points."""
    yield (
        "grade.sbatch",
        filled("slurm_grade.sbatch", course=str(ROOT), points=str((out.parent / "points").absolute())),
    )


def kubernetes(course: Course, out: Path) -> Files:
    """Two jobs for each assignment, as for Slurm, and the image that grades.

    "Jobs", https://kubernetes.io/docs/concepts/workloads/controllers/job/. The image holds no solutions, so it counts
    correctness alone.
    """
    yield "image/Dockerfile", filled("grader_Dockerfile")
    for assignment in course.assignments:
        name = assignment.name
        grade = (
            ".venv/bin/python -m helpers grade /class/submissions --jobs 1 "
            f"--points assignments/{name}.yml --out /class/grades/{name}"
        )
        words = {"assignment": name, "job": name.lower().replace("_", "-"), "grade": grade}
        yield f"{name}.yml", filled("kubernetes_job.yml", **words)


PLATFORMS: dict[str, Callable[[Course, Path], Files]] = {
    "gradescope": gradescope,
    "kernelbot": kernelbot.files,
    "kubernetes": kubernetes,
    "nbgrader": nbgrader,
    "otter": otter,
    "prairielearn": prairielearn,
    "slurm": slurm,
}


def write_points(course: Course, out: Path) -> Path:
    """Writes each assignment's file of points, as the instructor wrote it, below `out`/points. Returns that folder."""
    folder = out / "points"
    folder.mkdir(parents=True, exist_ok=True)
    for assignment in course.assignments:
        (folder / f"{assignment.name}.yml").write_text(_yaml(assignment.points), encoding="utf-8")
    return folder


def write(name: str, course: Course, out: Path, student: Path) -> Path:
    """Writes the files of a platform below `out`/NAME, and returns that folder. `student` is the students' copy."""
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    for relative, content in PLATFORMS[name](course, folder):
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        if content.startswith("#!"):
            path.chmod(0o755)
    if name == "gradescope":
        for assignment in course.assignments:
            pack_gradescope(folder / assignment.name, student)
    if (folder / "image").is_dir():
        shutil.copytree(student, folder / "image" / "course", ignore=shutil.ignore_patterns(".git"))
    return folder


def pack_gradescope(folder: Path, student: Path) -> None:
    """Replaces a folder by the archive that is uploaded, with the students' copy in course/."""
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        for base, prefix in ((folder, ""), (student, "course/")):
            for path in sorted(base.rglob("*")):
                where = path.relative_to(base)
                if path.is_file() and where.parts[0] != ".git":
                    archive.write(path, f"{prefix}{where.as_posix()}")
    shutil.rmtree(folder)


def _yaml(content: dict) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _json(content: dict) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
