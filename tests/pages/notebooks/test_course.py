"""`python -m helpers course`: rows, pages and outputs, for notebooks that run and for one that fails."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.pages.notebooks import canonical, course
from helpers.paths import ROOT

pytestmark = pytest.mark.slow


def write(path, *sources, title="A title"):
    cells = [new_markdown_cell(f"# {title}\n\nsee [next](01_fails.ipynb#there)", id="title")]
    cells += [new_code_cell(source, id=f"cell-{index}") for index, source in enumerate(sources)]
    nbformat.write(new_notebook(cells=cells), path)
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(folder, rows reported, rows returned, bytes before) of three notebooks, the second of which fails."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "notebooks").mkdir()
    paths = [
        write(folder / "notebooks" / "00_runs.ipynb", "import os", "print(os.getcwd())\n6 * 7", title="Six & seven"),
        write(folder / "notebooks" / "01_fails.ipynb", "print('before')", "raise ValueError('no such <thing>')", "1"),
        write(folder / "notebooks" / "02_runs.ipynb", "'after'"),
    ]
    before = {path.name: path.read_bytes() for path in paths}
    reported = []
    rows = course.run_course(paths, folder / "build", "simulator", report=reported.append)
    return folder, reported, rows, before


def test_one_row_for_each_notebook(ran):
    _, reported, rows, _ = ran
    assert reported == rows
    assert [(row.name, row.ok) for row in rows] == [("00_runs", True), ("01_fails", False), ("02_runs", True)]
    assert {row.target for row in rows} == {"simulator"}
    assert rows[1].result == "failed: ValueError: no such <thing>"
    assert all(row.seconds > 0 for row in rows)


def test_pages_hold_the_outputs_also_of_the_notebook_that_failed(ran):
    folder = ran[0] / "build"
    assert str(ran[0] / "notebooks") in (folder / "00_runs.html").read_text()  # it ran in its own folder
    page = (folder / "01_fails.html").read_text()
    assert "before" in page
    assert "ValueError" in page
    assert 'href="01_fails.html#there"' in (folder / "00_runs.html").read_text()


def test_output_of_c_code_is_in_the_notebook_and_not_on_the_terminal(tmp_path, capfd, monkeypatch):
    source = "import ctypes\nlibc = ctypes.CDLL(None)\n_ = libc.puts(b'from C')\nlibc.fflush(None);"
    prints = write(tmp_path / "c.ipynb", source)
    with monkeypatch.context() as patch:
        patch.delenv("PYTEST_CURRENT_TEST")  # if it is set, ipykernel passes nothing on
        course.run_course([prints], tmp_path / "build", "simulator", report=lambda row: None)
    captured = capfd.readouterr()
    assert "from C" not in captured.out + captured.err
    (output,) = nbformat.read(tmp_path / "build" / "c.ipynb", as_version=4).cells[1].outputs
    assert output.text == "from C\n"


def test_the_index_links_to_every_page(ran):
    index = (ran[0] / "build" / "index.html").read_text()
    for name in ("00_runs", "01_fails", "02_runs"):
        assert f'<a href="{name}.html">' in index
    assert "Six &amp; seven" in index
    assert "no such &lt;thing&gt;" in index


def test_the_notebooks_themselves_are_untouched(ran):
    folder, _, _, before = ran
    assert {path.name: path.read_bytes() for path in (folder / "notebooks").iterdir()} == before


def test_a_cell_that_was_never_reached_does_not_look_as_if_it_had_run(ran):
    copy = nbformat.read(ran[0] / "build" / "01_fails.ipynb", as_version=4)
    assert [cell.execution_count for cell in copy.cells if cell.cell_type == "code"] == [1, 2, None]


def test_in_place_writes_canonical_notebooks_and_only_those_that_ran(tmp_path):
    good = write(tmp_path / "good.ipynb", "print('a')", "print('b')")
    bad = write(tmp_path / "bad.ipynb", "1 / 0")
    before = bad.read_bytes()
    assert canonical.problems(good.read_text()) != []
    course.run_course([good, bad], tmp_path / "build", "simulator", in_place=True, report=lambda row: None)
    assert canonical.problems(good.read_text()) == []
    assert bad.read_bytes() == before


def test_a_process_that_dies_is_a_failed_notebook(tmp_path):
    dies = write(tmp_path / "dies.ipynb", "import os\nos._exit(3)")
    (row,) = course.run_course([dies], tmp_path / "build", "simulator", report=lambda row: None)
    assert row.result == "failed: the notebook's process died"


@pytest.mark.parametrize(("failing", "status"), [(False, 0), (True, 1)])
def test_exit_status_and_table(tmp_path, monkeypatch, capsys, failing, status):
    write(tmp_path / "00_one.ipynb", "1 / 0" if failing else "1")
    write(tmp_path / "10_other.ipynb", "1 / 0")
    monkeypatch.setattr(course, "NOTEBOOKS", tmp_path)
    assert course.main(["--only", "0*", "--build", str(tmp_path / "build")]) == status
    printed = capsys.readouterr().out
    assert "00_one" in printed
    assert "10_other" not in printed
    assert os.path.exists(tmp_path / "build" / "index.html")


def test_no_notebook_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(course, "NOTEBOOKS", tmp_path)
    assert course.main([]) == 1
    assert "no notebook" in capsys.readouterr().err


def until(condition, seconds=60):
    """Waits until a condition holds; returns whether it did in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize(("workers", "together"), [(1, False), (2, True)])
def test_workers_run_notebooks_at_the_same_time(tmp_path, workers, together):
    source = """import pathlib, time
pathlib.Path("{own}").touch()
end = time.monotonic() + 10
while not pathlib.Path("{other}").exists():
    assert time.monotonic() < end, "alone"
    time.sleep(0.05)"""
    names = [("00_one", "01_two"), ("01_two", "00_one")]
    paths = [write(tmp_path / f"{own}.ipynb", source.format(own=own, other=other)) for own, other in names]
    rows = course.run_course(paths, tmp_path / "build", "simulator", report=lambda row: None, workers=workers)
    assert [row.name for row in rows] == ["00_one", "01_two"]
    assert [row.ok for row in rows] == [together, True]  # alone, the second finds the file that the first left


def test_an_interrupt_ends_the_notebooks_processes(tmp_path):
    source = "import os, pathlib, time\npathlib.Path('{}.pid').write_text(str(os.getpid()))\ntime.sleep(600)"
    paths = [write(tmp_path / f"{i}.ipynb", source.format(i)) for i in range(2)]
    code = f"""import pathlib
from helpers.pages.notebooks import course
paths = [pathlib.Path(p) for p in {[str(p) for p in paths]}]
course.run_course(paths, pathlib.Path({str(tmp_path / "build")!r}), "simulator", workers=2)"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    files = [tmp_path / f"{i}.pid" for i in range(2)]
    assert until(lambda: all(f.exists() and f.read_text() for f in files))
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert process.returncode != 0
    assert until(lambda: not any(Path(f"/proc/{f.read_text()}").exists() for f in files))
