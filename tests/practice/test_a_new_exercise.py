"""An exercise is two files: a solution and a check make it known to all that lists, checks, hands out and grades."""

import nbformat
import pytest

import helpers
from helpers.paths import HELPERS, ROOT
from helpers.practice import cells, checks, command, judge, registry
from helpers.practice.assistance import Hints
from helpers.practice.checks import CHECKS
from helpers.teaching.classroom import submissions
from helpers.teaching.handout.outlines import outline
from helpers.upkeep.mutants import targets

NAME = "turn_round"


@pytest.fixture
def added(tmp_path, monkeypatch):
    """A copy of the solutions with one more, `turn_round`, and its check: those of `roll` under another name."""
    (tmp_path / "solutions").mkdir()
    for exercise in registry.exercises():
        (tmp_path / "solutions" / exercise.solution.name).write_text(exercise.solution.read_text())
    text = (tmp_path / "solutions" / "roll.cu").read_text().replace("roll", NAME)
    (tmp_path / "solutions" / f"{NAME}.cu").write_text(text.replace("Exercise 3 of", "Exercise 5 of"))
    monkeypatch.setattr(registry, "KERNELS", tmp_path)
    monkeypatch.setattr(registry, "MY_LESSONS", tmp_path / "my_lessons")
    monkeypatch.setitem(CHECKS, NAME, CHECKS["roll"])
    return registry.find(NAME)


@pytest.mark.slow  # builds it; its cells, from the same two files, are below
def test_two_files_make_an_exercise(added, tmp_path, capsys):
    assert (added.lesson, added in helpers.exercises(), added.starter.is_file()) == ("01", True, True)
    assert judge.check_file(NAME).kind == "unsolved"
    if helpers.target == "simulator":  # on a GPU, an answer's process begins anew and knows the course's own exercises
        assert judge.check_file(NAME, added.solution).accepted
    assert registry.read(NAME).hints[0] in repr(Hints(NAME, shown=1))
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert f"01  {NAME}" in capsys.readouterr().out
    assert [target.name for target in targets.find([NAME])] == [NAME]
    (tmp_path / "week").mkdir()
    (tmp_path / "week" / f"{NAME}.cu").write_text("mine")
    assert list(submissions.read(tmp_path / "week").answers) == [NAME]
    assert "[solution: about" in outline(added.solution.read_text())


def test_its_lesson_gets_its_cells_and_no_other_lesson_changes(added, tmp_path):
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert cells.write(tmp_path) == ["notebooks/01_vector_add.ipynb"]
    notebook = nbformat.read(tmp_path / "01_vector_add.ipynb", as_version=4)
    names = [name for cell in notebook.cells if (name := cells.named_in(cell.source))]
    assert names[-2:] == ["moving_average", NAME]


def named_elsewhere(names, sources):
    """Files beside an exercise's two that have its name as a text of its own."""
    quoted = {name: (f'"{name}"', f"'{name}'") for name in names}
    return {path.name: found for path, text in sources.items()
            if (found := {name for name, forms in quoted.items() if any(form in text for form in forms)})}  # fmt: skip


def test_no_other_file_of_practice_names_an_exercise():
    """Else a new one would have to be added there, too."""
    own = set(checks.__path__)
    sources = {path: path.read_text(encoding="utf-8") for path in (HELPERS / "practice").rglob("*.py")}
    others = {path: text for path, text in sources.items() if str(path.parent) not in own}
    names = [exercise.name for exercise in registry.exercises()]
    assert len(others) > 20
    assert named_elsewhere(names, others) == {}
    planted = HELPERS / "practice" / "planted.py"
    assert named_elsewhere(names, others | {planted: 'if name == "roll":'}) == {"planted.py": {"roll"}}
