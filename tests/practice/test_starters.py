"""The learner's files and the notebooks' cells are generated from the solutions; marks.py reads a solution's marks."""

import os
import subprocess
import time
from dataclasses import replace

import nbformat
import pytest

import helpers
from helpers.paths import ROOT
from helpers.practice import cells, marks, registry, starters
from helpers.practice.assistance import solution_source

EXERCISES = registry.exercises()
NAMES = [exercise.name for exercise in EXERCISES]


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A course with one solution, roll.cu, and an empty folder of the learner's. Returns the path of the solution."""
    (tmp_path / "solutions").mkdir()
    path = tmp_path / "solutions" / "roll.cu"
    path.write_text((registry.KERNELS / "solutions" / "roll.cu").read_text())
    monkeypatch.setattr(registry, "KERNELS", tmp_path)
    monkeypatch.setattr(registry, "MY_LESSONS", tmp_path / "my_lessons")
    return path


def rewritten(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(time.time_ns(), time.time_ns() + len(new)))  # later than the last reading, on any file system


def test_the_listed_exercises_have_their_starters(made_up):
    assert not registry.find("roll").starter.exists()
    ((name, lesson, title, starter, solution),) = helpers.exercises()
    assert (name, lesson, title, solution) == ("roll", "01", "Roll a vector around", made_up)
    assert starter.read_text() == registry.read("roll").starter
    starter.unlink()
    assert starters.mine("roll") == starter and starter.is_file()


def test_a_changed_answer_is_kept_and_an_untouched_one_follows_its_solution(made_up):
    starter = starters.mine("roll")
    rewritten(made_up, "The kernel moves", "It moves")
    assert starters.renew() == (["roll.cu"], [])
    assert "It moves" in starter.read_text()
    starter.write_text("mine")
    assert starters.renew() == ([], [])  # its solution is what it was
    rewritten(made_up, "It moves", "All in all, it moves")
    assert starters.renew() == ([], ["roll.cu"])
    (starter.parent / starters.RECORD).write_text("{damaged")
    assert starters.renew() == ([], ["roll.cu"])
    assert starter.read_text() == "mine"


def test_without_the_record_a_file_that_is_the_starter_is_not_an_answer(made_up):
    starter = starters.mine("roll")
    (starter.parent / starters.RECORD).unlink()
    assert starters.renew() == ([], [])
    rewritten(made_up, "The kernel moves", "It moves")
    assert starters.renew() == (["roll.cu"], [])


def test_a_folder_that_cannot_be_written_is_named(made_up, monkeypatch):
    registry.MY_LESSONS.write_text("a file where the folder should be")
    assert [exercise.name for exercise in helpers.exercises()] == ["roll"]
    with pytest.raises(FileNotFoundError, match=r"roll.cu cannot be made: .*python -m helpers check roll FILE"):
        starters.mine("roll")


def test_git_does_not_follow_what_a_learner_writes():
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a clone")
    paths = [str(exercise.starter) for exercise in EXERCISES]
    command = ["git", "-C", str(ROOT), "-c", "core.quotePath=false", "check-ignore", *paths]
    assert subprocess.run(command, capture_output=True, text=True).stdout.splitlines() == paths


def test_the_lessons_have_one_cell_of_each_exercise_as_generated():
    assert list(cells.stale(ROOT / "notebooks")) == []
    found = [cells.named_in(cell.source) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
             for cell in nbformat.read(path, as_version=4).cells]  # fmt: skip
    assert list(filter(None, found)) == NAMES


def lesson(path, *sources):
    code = [nbformat.v4.new_code_cell(text) for text in sources[1:]]
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(sources[0]), *code]), path)


def test_what_is_not_as_generated_is_reported_and_fixed(made_up, tmp_path, capsys):
    lesson(tmp_path / "01_lesson.ipynb", "roll it", "%%exercise roll\nint x;", "%%exercise rool\n", "x = 1")
    found = list(cells.stale(tmp_path))
    assert len(found) == 3
    assert "the cell of exercise roll is not" in found[0]
    assert "the cell before exercise roll is not its specification" in found[1]
    assert "no exercise rool" in found[2]
    with pytest.raises(registry.UnknownExercise, match="rool"):
        cells.write(tmp_path)
    lesson(tmp_path / "01_lesson.ipynb", "roll it", "%%exercise roll\nint x;", "y = 1", "x = 1")
    arguments = [f"--notebooks={tmp_path}"]
    assert starters.main(["--check", *arguments]) == 1 and "run: python -m helpers starters" in capsys.readouterr().out
    assert starters.main(["--write", *arguments]) == 0 and "01_lesson.ipynb" in capsys.readouterr().out
    assert starters.main(["--check", *arguments]) == 0
    assert list(cells.stale(tmp_path)) == []


def test_a_lesson_gets_the_cells_that_it_lacks_in_the_order_of_the_exercises(made_up, tmp_path):
    first, last = ((made_up.parent / f"{name}.cu") for name in ("first", "last"))
    for path, number in ((first, "Exercise 2"), (last, "Exercise 4")):
        path.write_text(made_up.read_text().replace("// roll.cu", f"// {path.name}").replace("Exercise 3", number))
    lesson(tmp_path / "01_lesson.ipynb", "roll it", "%%exercise roll\n", "x = 1")
    lesson(tmp_path / "02_lesson.ipynb", "not here")
    assert cells.write(tmp_path) == ["notebooks/01_lesson.ipynb"]
    notebook = nbformat.read(tmp_path / "01_lesson.ipynb", as_version=4)
    assert [cells.named_in(cell.source) for cell in notebook.cells] == [None, "first", None, "roll", None, "last", None]
    assert list(cells.stale(tmp_path)) == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_solving_only_adds_lines(exercise):
    marked = registry.read(exercise.name)
    solution = iter(exercise.solution.read_text().split("\n"))
    if marked.broken:
        return  # see test_a_solution_with_a_bug_to_find_is_read
    gaps = [line for line in marked.starter.split("\n") if marks.GAP in line]
    kept = [line for line in marked.starter.split("\n") if marks.GAP not in line]
    assert all(line in solution for line in kept)  # in this order
    assert "[hints]" not in marked.starter
    assert "[cell]" not in marked.starter
    assert [line.partition(": ")[2] for line in gaps] == [size for size, _ in marked.gaps]
    assert all(hint[:30] not in marked.starter for hint in marked.hints)


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_the_stated_size_is_that_of_the_solution(exercise):
    for size, lines in registry.read(exercise.name).gaps:
        stated = int(size.split()[1])
        assert abs(stated - lines) <= max(0, stated // 5), size


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_is_short_and_has_a_gap(name):
    text = cells.cell_source(name)
    assert text.startswith((f"%%exercise {name}\n// ", f"%%exercise {name}\ndef "))
    assert (marks.GAP in text) != registry.read(name).broken
    assert text.count("\n") < 24


SMALL = """// small.cu: A title. Exercise 2 of lesson 08, about 3 minutes.
//
// What it does,
// in two lines.
//
// More.
//
// [hints]
// - first,
//   still the first
// - second
// [end]

before
// [cell]
given
  // [solution: about 1 line]
  // why
  secret
  // [end]
// [end]
after
"""


def test_a_small_solution_is_read():
    marked = marks.parse(SMALL, "small.cu")
    assert (marked.name, marked.title, marked.number) == ("small", "A title", 2)
    assert (marked.lesson, marked.minutes) == ("08", 3)
    assert marked.specification == "What it does, in two lines."
    assert marked.hints == ("first, still the first", "second")
    assert marked.gaps == (("about 1 line", 1),)
    assert marked.cell_text == "given\n  // YOUR CODE HERE: about 1 line\n"
    before, after = marked.around_cell
    assert before + marked.cell_text + after == marked.starter
    assert marked.starter == (
        "// small.cu: A title. Exercise 2 of lesson 08, about 3 minutes.\n//\n// What it does,\n// in two lines.\n//\n"
        "// More.\n\nbefore\ngiven\n  // YOUR CODE HERE: about 1 line\nafter\n"
    )
    first, last = marked.solution_cell
    assert SMALL.split("\n")[first - 1] == "given"
    assert SMALL.split("\n")[last - 1] == "  // [end]"


def test_lines_that_are_marks_or_broken_code_are_known():
    in_small = {"[cell]", "[solution", "[hints]", "[end]"}
    for text, hidden in ((SMALL, in_small), (BROKEN, {"[broken]", "if (a) b;", "c;"})):
        lines = text.split("\n")
        found = [lines[number - 1] for number in sorted(marks.marks_in(text))]
        assert all(any(word in line for line in found) for word in hidden)
        assert not {"before", "given", "after"} & set(found)
        assert len(found) == sum("[" in line or "if (a) b;" in line or line.strip() == "//   c;" for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_is_shown_without_marks_and_with_its_own_line_numbers(name):
    shown = solution_source(name)
    lines = registry.find(name).solution.read_text(encoding="utf-8").split("\n")
    _, *numbered = repr(shown).split("\n")
    assert len(numbered) < shown.text.count("\n") + 1
    for line in numbered:
        number, _, text = line.strip().partition("  ")
        assert lines[int(number) - 1].strip() == text.strip()
        assert not marks.OPENING.fullmatch(text) and not marks.CLOSING.fullmatch(text)
    assert "[end]" not in shown._repr_html_()


def test_a_small_solution_in_python_is_read():
    marked = marks.parse(SMALL.replace("//", "#").replace("small.cu", "small.py"), "small.py")
    plain = marks.parse(SMALL, "small.cu")
    for part in ("title", "specification", "hints", "gaps", "cell", "solution_cell"):
        assert getattr(marked, part) == getattr(plain, part)
    assert marked.cell_text == "given\n  # YOUR CODE HERE: about 1 line\n"


BROKEN = SMALL.replace("  // [sol", "  // [broken]\n  // if (a) b;\n  //   c;\n  // [end]\n  // [sol")


def test_a_solution_with_a_bug_to_find_is_read():
    """The starter has the bug where the solution was, and nothing that says so."""
    marked, plain = marks.parse(BROKEN, "small.cu"), marks.parse(SMALL, "small.cu")
    assert marked.cell_text == "given\n  if (a) b;\n    c;\n"
    assert marked.gaps == plain.gaps
    assert (marked.task("this cell"), plain.task("this cell")) == (
        "find and fix the bug in this cell (about 1 line)",
        "replace the comment in this cell with your code (about 1 line)",
    )
    for sizes, said in (
        (["about 1 line"] * 3, "3 comments in this cell with your code (about 1 line each)"),
        (["about 1 line", "about 3 lines"], "2 comments in this cell with your code (about 1 line and about 3 lines)"),
    ):
        assert replace(plain, gaps=tuple((size, 1) for size in sizes)).task("this cell") == f"replace the {said}"
    forgotten = BROKEN.replace("  // if (a) b;\n  //   c;\n", "")  # the bug may be that something is missing
    assert marks.parse(forgotten, "small.cu").cell_text == "given\n"
    for name in NAMES:
        bug = registry.read(name)
        if bug.broken:
            kept = [line for line in bug.starter.split("\n") if line not in bug.cell_text.split("\n")]
            solution = iter(registry.find(name).solution.read_text().split("\n"))
            assert all(line in solution for line in kept)
            assert "[broken]" not in bug.starter


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("  // if (a) b;", "  if (a) b;", r"small.cu:18: broken code is a comment"),
        ("  // [solution: about 1 line]", "  x\n  // [solution: about 1 line]", r"small.cu:21: after \[broken\] comes"),
        ("  // [broken]\n", "  // [broken]\n  // [end]\n  // [broken]\n", r"small.cu:19: after \[broken\] comes"),
        ("  secret\n  // [end]\n", "  s\n  // [end]\n  // [solution: about 1 line]\n  // [end]\n", "before each"),
        ("// [cell]\n", "// [broken]\n// [end]\n// [cell]\n", r"small.cu:15: \[broken\] outside of \[cell\]"),
    ],
)
def test_a_bad_bug_to_find_is_refused(old, new, problem):
    assert BROKEN.count(old) == 1
    with pytest.raises(ValueError, match=problem):
        marks.parse(BROKEN.replace(old, new), "small.cu")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Exercise 2", "Exercise two", "small.cu:1: the first line must be"),
        ("// [cell]\n", "", "small.cu:16: .solution. outside of .cell."),
        (": about 1 line]", "]", "small.cu:17: write"),
        ("  // [end]\n// [end]\nafter", "  // [end]\nafter", r"small.cu:15: \[cell\] without"),
        ("after", "// [end]", r"small.cu:22: \[end\] with nothing open"),
        ("after", "// [cell]\n// [end]", "small.cu:22: a second"),
        ("// - first,", "// first", "small.cu:9: a hint begins"),
        ("  // [solution: about 1 line]\n  // why\n  secret\n  // [end]\n", "", "at least one"),
        ("// - first,\n//   still the first\n// - second\n", "", "hints"),
        ("  secret\n", "  // [hints]\n  // [end]\n", r"small.cu:19: \[hints\] inside \[solution\]"),
    ],
)
def test_a_bad_solution_file_is_refused(old, new, problem):
    assert old in SMALL
    with pytest.raises(ValueError, match=problem):
        marks.parse(SMALL.replace(old, new, 1), "small.cu")
