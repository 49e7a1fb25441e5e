"""The students' copy: what is in it, what is not, and that it works."""

import json
import re
import shutil

import nbformat
import pytest
from running import git, python, run

from helpers.pages.notebooks import rules
from helpers.paths import KERNELS, ROOT
from helpers.practice import registry
from helpers.practice.cells import cell_source, named_in
from helpers.teaching.classroom import points
from helpers.teaching.handout import assignments, command, release

AFTERNOON = assignments.read(assignments.COURSES / "afternoon.yml")


def files(folder):
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {path for path in paths if not path.startswith(".git/")}


def test_only_what_students_need_is_there(released):
    found = files(released / "student")
    assert {path.split("/")[1] for path in found if path.startswith("kernels/")} >= {"outlines", "include"}
    assert not [path for path in found if re.search(r"solution|mutants|^tests|wrong_answers|__pycache__", path)]
    assert {path for path in found if path.startswith("notebooks/")} == {
        "notebooks/00_start_here.ipynb", "notebooks/01_vector_add.ipynb", "notebooks/02_elementwise_mult.ipynb",
    }  # fmt: skip
    for folder in ("my_lessons/exercises", "kernels/outlines"):
        names = {path.split("/")[2].split(".")[0] for path in found if path.startswith(f"{folder}/")}
        assert names == set(AFTERNOON.exercises)


def test_a_file_of_tests_or_solutions_stays_out(released):
    """Two-sided: these files are there in the course."""
    tables = "tests/practice/wrong_answers/lesson_01.toml"
    for name in ("kernels/solutions/roll.cu", tables, "helpers/upkeep/mutants/judges.py"):
        assert (ROOT / name).is_file()
        assert not (released / "student" / name).exists()


def test_the_history_is_one_commit(released):
    student = released / "student"
    assert git(student, "log", "--all", "--format=%an %s") == "The Kernel Ladder CUDA C++ in an afternoon\n"
    assert git(student, "status", "--porcelain") == ""


@pytest.mark.slow  # writes a course twice
def test_the_same_choice_gives_the_same_bytes(released, tmp_path):
    assert command.main(["afternoon", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "student.zip").read_bytes() == (released / "student.zip").read_bytes()
    first, second = (git(out / "student", "rev-parse", "HEAD") for out in (tmp_path, released))
    assert first == second != ""
    assert command.main(["afternoon", "--out", str(tmp_path)]) == 0  # over the earlier release


def test_a_folder_of_something_else_is_kept(tmp_path, capsys):
    precious = tmp_path / "student" / "thesis.txt"
    precious.parent.mkdir()
    precious.write_text("ten years")
    assert command.main(["afternoon", "--out", str(tmp_path)]) == 2
    assert precious.read_text() == "ten years"
    assert "holds something else than a release" in capsys.readouterr().err


def test_a_leak_is_not_handed_out(tmp_path, monkeypatch, capsys):
    wrong = release.contents

    def leaking(course):
        yield from wrong(course)
        yield "notes.cu", (KERNELS / "solutions" / "roll.cu").read_bytes()

    monkeypatch.setattr(release, "contents", leaking)
    assert command.main(["afternoon", "--out", str(tmp_path)]) == 1
    assert "notes.cu: has a line of the solution of roll: " in capsys.readouterr().err
    assert not (tmp_path / "student.zip").exists()


def test_notebooks_have_the_chosen_exercises_alone(released, tmp_path):
    text = "assignments: {one: {exercises: {vector_scale: 1, moving_average: 1}}}"
    (tmp_path / "course.yml").write_text(text)
    chosen = assignments.read(tmp_path / "course.yml").exercises
    text = release.notebook(ROOT / "notebooks" / "01_vector_add.ipynb", chosen)
    lesson = nbformat.reads(text, as_version=4)
    cells = {named_in(cell.source): cell for cell in lesson.cells if named_in(cell.source)}
    assert set(cells) == set(chosen)
    assert all(cell.source == cell_source(name) and cell.outputs == [] for name, cell in cells.items())
    assert not any("Roll a vector around" in cell.source for cell in lesson.cells)
    assert any(cell.get("outputs") for cell in lesson.cells), "the lesson's own outputs stay"
    assert [problem for problem in rules.problems(text) if "execution count" not in problem] == []


def test_points_can_be_read(released):
    for path in (released / "student" / "assignments").iterdir():
        assert points.read(path).total == AFTERNOON.assignments[0].scheme.total


def test_the_makefile_has_targets_for_students(released):
    found = run("make", "help", cwd=released / "student")
    assert re.findall(r"^  make (\S+)", found.stdout, re.MULTILINE) == [*release.TARGETS, "check", "points"]
    for target in ("setup", "lab", "check", "points"):
        run("make", "-n", target, cwd=released / "student")


def test_make_classroom_passes_its_variables_on():
    lines = run("make", "-n", "classroom", "COURSE=my.yml", "OUT=out", "ARGS=--platform otter").stdout
    assert '-m helpers handout "my.yml" --out "out" --platform otter' in lines
    plain = run("make", "-n", "classroom").stdout
    assert '-m helpers handout "four_weeks" --out "build/classroom"' in plain


def test_the_page_says_what_to_do(released):
    page = (released / "student" / "README.md").read_text(encoding="utf-8")
    for name in AFTERNOON.exercises:
        assert f"| `{name}` | {registry.read(name).lesson} |" in page
    assert "until 2027-01-11 17:30" in page
    assert "make points FILE=assignments/afternoon.yml" in page


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it builds the simulator anew, for another folder
def test_a_check_answers_in_the_copy(released, tmp_path):
    student = shutil.copytree(released / "student", tmp_path / "student")

    def there(*arguments, status=0):
        return python(*arguments, cwd=student, PYTHONPATH=str(student), status=status)

    unsolved = there("-m", "helpers", "check", "roll", status=1)
    assert unsolved.stderr == ""
    assert "a hint, and more are in kernels/outlines/roll.cu" in unsolved.stdout
    right = tmp_path / "right.cu"
    right.write_bytes((KERNELS / "solutions" / "roll.cu").read_bytes())
    wrong = tmp_path / "wrong.cu"
    wrong.write_text(right.read_text().replace("if (from < 0) from += n;", ""))
    assert "accepted" in there("-m", "helpers", "check", "roll", right).stdout
    assert "elements are wrong" in there("-m", "helpers", "check", "roll", wrong, status=1).stdout
    asked = there("-c", "from helpers.practice.magic import hint, solution; print(solution('roll'), hint('roll'))")
    assert "this copy of the course has no solutions" in asked.stdout and "1. Solve" in asked.stdout
    other = there("-m", "helpers", "check", "transpose", status=2)
    assert "the exercises are vector_scale, roll" in other.stderr
    there("-m", "helpers", "mutants", status=2)
    shutil.copy(right, student / "my_lessons" / "exercises" / "roll.cu")
    grade = ("-m", "helpers", "grade", ".", "--single", "--trust", "--points")
    there(*grade, "assignments/afternoon.yml", "--format", "json", "--out", "build/points")
    efficient = tmp_path / "efficient.yml"
    efficient.write_text("exercises: {roll: {points: 4, efficiency: 0.5}}")
    refused = there(*grade, efficient, status=1)
    assert "efficiency is judged beside the course's solutions" in refused.stderr
    (submission,) = json.loads((student / "build" / "points" / "grades.json").read_text())["submissions"]
    assert submission["points"] == 15
