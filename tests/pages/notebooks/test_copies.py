"""`make lab` opens copies of the lessons: what is copied when, and that nothing of the learner's is overwritten."""

import sys

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook

from helpers.pages.notebooks import copies, lab


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """(the lessons, the learner's folder); there are two lessons, and a file that is not one."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    lessons = tmp_path / "notebooks"
    lessons.mkdir()
    (lessons / "conftest.py").write_text("")
    for name in ("00_a.ipynb", "01_b.ipynb"):
        change(lessons / name, f"print('{name}')")
    return lessons, tmp_path / "own"


def change(path, source):
    nbformat.write(new_notebook(cells=[new_code_cell(source, id="a")]), path)


def test_lessons_are_copied_and_trusted(folders):
    lessons, own = folders
    assert copies.refresh(lessons, own) == []
    assert sorted(path.name for path in own.glob("[!.]*")) == ["00_a.ipynb", "01_b.ipynb"]
    for path in own.glob("*.ipynb"):
        assert path.read_text() == (lessons / path.name).read_text()
        assert NotebookNotary().check_signature(nbformat.read(path, as_version=4))


def test_a_new_version_replaces_an_unchanged_copy_only(folders):
    lessons, own = folders
    copies.refresh(lessons, own)
    change(own / "00_a.ipynb", "mine = 1")
    assert copies.refresh(lessons, own) == []  # both lessons are what they were
    for path in lessons.glob("*.ipynb"):
        change(path, "new = 2")
    assert copies.refresh(lessons, own) == ["00_a.ipynb"]
    assert copies.refresh(lessons, own) == ["00_a.ipynb"]  # until it is renamed
    assert "mine = 1" in (own / "00_a.ipynb").read_text()
    assert "new = 2" in (own / "01_b.ipynb").read_text()
    (own / "00_a.ipynb").rename(own / "old.ipynb")
    assert copies.refresh(lessons, own) == []
    assert "new = 2" in (own / "00_a.ipynb").read_text()


def test_a_copy_that_was_deleted_comes_back(folders):
    lessons, own = folders
    copies.refresh(lessons, own)
    (own / "01_b.ipynb").unlink()
    assert copies.refresh(lessons, own) == []
    assert (own / "01_b.ipynb").exists()


def started(monkeypatch, capsys):
    """The arguments with which `make lab` starts JupyterLab, and what it says."""
    found = []
    monkeypatch.setattr(lab.os, "execv", lambda program, arguments: found.extend(arguments))
    monkeypatch.setattr(lab.os, "chdir", lambda folder: None)
    lab.main(["--no-browser"])
    return found, capsys.readouterr().out


def test_jupyterlab_starts_with_the_copies_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(copies, "refresh", lambda: ["08_matmul.ipynb"])
    arguments, said = started(monkeypatch, capsys)
    assert arguments[:3] == [sys.executable, "-m", "jupyterlab"] and arguments[-1] == "--no-browser"
    assert "--LabApp.default_url=/lab/tree/my_lessons/00_start_here.ipynb" in arguments
    assert "in my_lessons/" in said and "newer version of 08_matmul.ipynb" in said


def test_students_open_what_they_hand_in(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(lab, "KERNELS", tmp_path)  # without solutions
    monkeypatch.setattr(copies, "refresh", lambda: pytest.fail("a copy would not be handed in"))
    arguments, said = started(monkeypatch, capsys)
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in arguments and said == ""
