"""nbgrader's and otter's own command lines: what an instructor does, from the assignment to the points.

Each runs in an environment of its own without PyTorch, as the course's grading does not need theirs.
"""

import csv
import json
import os
import sys

import nbformat
import pytest
import running
from other_environments import environment_with

from helpers.paths import KERNELS, ROOT
from helpers.practice.cells import named_in
from helpers.teaching.handout import assignments, command, leaks, notebooks_of, platforms

NBGRADER = ("nbgrader==0.9.6", "ipykernel")
OTTER = ("otter-grader==7.0.0", "ipykernel")
COURSE = "assignments: {first: {title: One kernel, due: 2027-01-17, exercises: {vector_scale: 4}}}"
RIGHT = """  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * x[i];"""
WRONG = RIGHT.replace("i < n", "i <= n")
OUTSIDE = "reads 4 bytes just past the end of x"  # seen by the X-ray, after which a grader runs it no more
GAP = "  // YOUR CODE HERE: about 2 lines"


@pytest.fixture
def out(tmp_path):
    """The folder in which the course COURSE was written for both platforms."""
    (tmp_path / "course.yml").write_text(COURSE)
    assert command.main([str(tmp_path / "course.yml"), "--out", str(tmp_path), "--platform", "nbgrader", "otter"]) == 0
    return tmp_path


def run(folder, bin_, *arguments, **variables):
    """Runs a program of the environment `bin_` in a folder; its output."""
    own = {f"JUPYTER_{name}_DIR": str(folder / "none") for name in ("CONFIG", "DATA")}
    own |= {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"} | variables
    name, *rest = arguments
    done = running.run(bin_ / name, *rest, cwd=folder, env=running.without("PYTHONPATH") | own)
    return done.stdout + done.stderr


def answer(source, target, line):
    """Copies a notebook with `line` in place of the gap."""
    notebook = nbformat.read(source, as_version=4)
    (cell,) = (cell for cell in notebook.cells if named_in(cell.source))
    assert GAP in cell.source
    cell.source = cell.source.replace(GAP, line)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


def test_the_notebooks_hold_each_exercise_and_no_solution(tmp_path):
    course = assignments.read(assignments.COURSES / "four_weeks.yml")
    for assignment in course.assignments:
        for make in (notebooks_of.for_nbgrader, notebooks_of.for_otter):
            notebook = make(assignment)
            nbformat.validate(notebook)
            named = [named_in(cell.source) for cell in notebook.cells if named_in(cell.source)]
            assert named == list(assignment.scheme.exercises)
            nbformat.write(notebook, tmp_path / f"{assignment.name}_{make.__name__}.ipynb")
    assert leaks.leaks(tmp_path) == []


def test_the_configuration_names_this_course(out):
    text = (out / "nbgrader" / "nbgrader_config.py").read_text()
    compile(text, "nbgrader_config.py", "exec")
    assert str(ROOT) in text and sys.executable in text and "$" not in text
    assert "Execute," not in text


def test_points_of_nbgrader_are_in_locked_cells():
    course = assignments.read(assignments.COURSES / "afternoon.yml")
    (assignment,) = course.assignments
    cells = [cell.metadata.nbgrader for cell in notebooks_of.for_nbgrader(assignment).cells]
    graded = {cell.grade_id: cell.points for cell in cells if cell.grade}
    assert graded == {name: worth.total for name, worth in assignment.scheme.exercises.items()}
    assert all(cell.locked == (not cell.solution) for cell in cells)
    assert {cell.grade_id for cell in cells if cell.solution} == {f"answer_{name}" for name in graded}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nbgrader_from_generate_to_export(out):
    bin_, instructor, student = environment_with(*NBGRADER), out / "nbgrader", out / "ann"
    exchange, course = f"--Exchange.root={out / 'exchange'}", ("--course", platforms.IDENTIFIER)
    student.mkdir()
    run(instructor, bin_, "nbgrader", "generate_assignment", "first")
    run(instructor, bin_, "nbgrader", "release_assignment", "first", exchange)
    run(student, bin_, "nbgrader", "fetch_assignment", "first", *course, exchange)
    assert leaks.leaks(out / "exchange") == leaks.leaks(instructor) == []
    starter = student / "first" / "first.ipynb"
    for name, line in (("right", RIGHT), ("wrong", WRONG), ("idle", GAP)):
        submitted = instructor / "submitted" / name / "first"
        answer(starter, submitted / "first.ipynb", line)
        (submitted / "timestamp.txt").write_text("2027-01-16 12:00:00.000000 UTC")
        (submitted / "submission_secret.txt").write_text(f"secret of {name}")  # as `nbgrader submit` makes one
    answer(starter, starter, RIGHT)
    run(student, bin_, "nbgrader", "submit", "first", *course, exchange)
    run(instructor, bin_, "nbgrader", "collect", "first", exchange)
    run(instructor, bin_, "nbgrader", "autograde", "first")
    run(instructor, bin_, "nbgrader", "generate_feedback", "first")
    run(instructor, bin_, "nbgrader", "release_feedback", "first", exchange)
    run(instructor, bin_, "nbgrader", "export")
    with open(instructor / "grades.csv", newline="") as file:
        rows = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    (user,) = rows.keys() - {"right", "wrong", "idle"}
    assert rows == {user: (4, 4), "right": (4, 4), "wrong": (0, 4), "idle": (0, 4)}
    feedback = {name: (instructor / "feedback" / name / "first" / "first.html").read_text() for name in rows}
    assert "accepted" in feedback["right"] and "accepted" not in feedback["wrong"]
    assert OUTSIDE in feedback["wrong"]


@pytest.mark.slow
def test_nbgrader_counts_the_points_of_each_verdict(tmp_path):
    """Its own rule, applied to our outputs: all, part and none of the points."""
    script = """
import json, sys
from nbformat.v4 import new_code_cell
from nbgrader.utils import determine_grade
from helpers.teaching.handout.nbgrader_check import outputs
for points, verdict in ((4, "accepted"), (3, "accepted"), (0, "rejected")):
    result = {"exercise": "roll", "verdict": verdict, "message": "m", "printed": "p", "points": points, "maximum": 4}
    cell = new_code_cell("", outputs=outputs(result))
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": 4, "grade_id": "roll", "locked": True}
    print(*determine_grade(cell))
"""
    bin_ = environment_with(*NBGRADER)
    printed = run(tmp_path, bin_, "python", "-c", script, PYTHONPATH=str(ROOT))
    assert printed.splitlines()[-3:] == ["4.0 4.0", "3.0 4.0", "0 4.0"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_otter_from_assign_to_points(out):
    bin_, folder = environment_with(*OTTER), out / "otter" / "first"
    run(folder, bin_, "otter", "assign", "first.ipynb", "dist", "--no-pdfs")
    (autograder,) = (folder / "dist" / "autograder").glob("*.zip")
    assert leaks.leaks(folder) == leaks.leaks(autograder) == []
    scores = {}
    for name, line in (("right", RIGHT), ("wrong", WRONG)):
        submission = folder / name / "first.ipynb"
        answer(folder / "dist" / "student" / "first.ipynb", submission, line)
        run(folder, bin_, "otter", "run", "-a", str(autograder), "-o", str(submission.parent), str(submission),
            PYTHONPATH=str(ROOT), KERNEL_LADDER_PYTHON=sys.executable)  # fmt: skip
        results = json.loads((submission.parent / "results.json").read_text())
        (scores[name],) = (test for test in results["tests"] if test["name"] == "vector_scale")
    assert (scores["right"]["score"], scores["right"]["max_score"]) == (4, 4)
    assert scores["wrong"]["score"] == 0 and OUTSIDE in scores["wrong"]["output"]


def test_the_right_line_is_the_solution_s():
    text = (KERNELS / "solutions" / "vector_scale.cu").read_text()
    assert RIGHT in text and WRONG not in text
