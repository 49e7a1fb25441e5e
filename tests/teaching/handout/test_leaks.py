"""Every way in which a solution could reach students is tried: each planted line is found, and nothing else is."""

import html
import json
import shutil
import zipfile

import pytest
from running import git

from helpers.paths import KERNELS, NOTEBOOKS
from helpers.practice import registry
from helpers.practice.verdict import Verdict
from helpers.teaching.handout import leaks

LINE = "int64_t from = (i - shift % n) % n;"


@pytest.fixture
def student(released, tmp_path):
    return shutil.copytree(released / "student", tmp_path / "student")


def lines(release):
    return {(leak.exercise, leak.line) for leak in leaks.leaks(release)}


def test_the_release_has_none(released):
    assert leaks.leaks(released / "student") == []
    assert leaks.leaks(released / "student.zip") == []


def test_every_exercise_has_lines_to_look_for():
    found = leaks.distinctive()
    assert set(found) == {exercise.name for exercise in registry.exercises()}
    assert all(found.values())
    assert LINE in found["roll"].values()


def test_each_solution_is_found_and_no_starter(tmp_path):
    for exercise in registry.exercises():
        (tmp_path / exercise.starter.name).write_text(registry.read(exercise.name).starter)
    assert leaks.leaks(tmp_path) == []
    found = {leak.exercise for leak in leaks.leaks(KERNELS / "solutions")}
    assert found == {exercise.name for exercise in registry.exercises()}


def test_the_course_itself_leaks():
    """Its notebooks are committed with outputs, in which the verdicts unfold solutions."""
    assert leaks.leaks(NOTEBOOKS)


@pytest.mark.parametrize(
    "text",
    [
        f"  {LINE}\n",
        "int64_t from=(i-shift%n)%n;",
        "int64_t from =\n    (i - shift % n) %\n    n;",
        "".join(f"<span style='color: red'>{html.escape(word)}</span>&nbsp;" for word in LINE.split()),
        json.dumps({"cells": [{"source": ["int64_t from\n", " = (i - shift % n) % n;"]}]}),
        json.dumps({"outputs": [{"data": {"text/html": [f"<pre>{html.escape(LINE)}</pre>"]}}]}),
    ],
    ids=["as it is", "squeezed", "wrapped", "coloured", "a cell", "an output"],
)
def test_a_planted_line_is_found(tmp_path, text):
    (tmp_path / "planted.txt").write_text(text, encoding="utf-8")
    assert lines(tmp_path) == {("roll", LINE)}


def test_a_planted_line_is_found_in_a_release(student):
    path = student / "helpers" / "pages" / "pictures" / "plot.py"
    path.write_text(path.read_text(encoding="utf-8") + f"# {LINE}\n", encoding="utf-8")
    assert [(leak.line, leak.where) for leak in leaks.leaks(student)] == [(LINE, "helpers/pages/pictures/plot.py")]


def test_a_line_is_found_in_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "student.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("student/notes.txt", LINE)
    assert lines(tmp_path / "student.zip") == {("roll", LINE)}


def test_a_line_is_found_in_the_history(student):
    (student / "slip.cu").write_text(LINE)
    for arguments in (["add", "slip.cu"], ["commit", "-qm", "slip"], ["reset", "-q", "--hard", "HEAD~1"]):
        git(student, *arguments)
    assert not (student / "slip.cu").exists()
    assert lines(student) == {("roll", LINE)}
    git(student, "commit", "-qm", LINE, "--allow-empty")
    assert {leak.where.split()[1] for leak in leaks.leaks(student)} == {"blob", "commit"}


def test_the_page_of_a_verdict_would_be_found(tmp_path):
    """The very output that an exercise's cell has in the course."""
    (tmp_path / "output.html").write_text(Verdict("roll", "rejected", "wrong")._repr_html_(), encoding="utf-8")
    assert ("roll", LINE) in lines(tmp_path)
