"""Every committed notebook is in canonical form, and each rule detects its violation."""

import copy
import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.pages.notebooks import canonical
from helpers.paths import NOTEBOOKS
from kernel_xray.machine import progress

NOTEBOOKS = sorted(NOTEBOOKS.glob("*.ipynb"))
ELSEWHERE = "/".join(["", "home", "ann", "venv", "lib"])
ROOTS = "/".join(["", "root", "venv", "lib"])


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_canonical(path):
    assert canonical.problems(path.read_text(encoding="utf-8")) == []


def sample():
    """A canonical notebook that has one output of each kind."""
    cells = [
        new_markdown_cell("# A title", id="title"),
        new_code_cell(
            "print('µ')\n1 + 1",
            id="first",
            execution_count=1,
            outputs=[
                new_output("stream", name="stdout", text="µ\nand more\n"),
                new_output("execute_result", {"text/plain": "2"}, execution_count=1),
            ],
        ),
        new_code_cell(
            "1 / 0",
            id="second",
            execution_count=2,
            metadata={"tags": ["raises-exception"]},
            outputs=[new_output("error", ename="ZeroDivisionError", evalue="division by zero", traceback=["a", "b"])],
        ),
        new_code_cell(
            "show()",
            id="third",
            execution_count=3,
            outputs=[new_output("display_data", {"image/png": f"iVBO{ELSEWHERE}", "text/plain": "<Figure>"})],
        ),
    ]
    metadata = {"kernelspec": dict(canonical.KERNELSPEC), "language_info": dict(canonical.LANGUAGE_INFO)}
    return new_notebook(cells=cells, metadata=metadata)


def test_a_canonical_notebook_has_no_problem_and_stays_as_it_is():
    text = canonical.to_text(sample())
    assert canonical.problems(text) == []
    assert canonical.fixed(text) == text


def set_first(**values):
    """A change of the metadata of the first code cell."""
    return lambda nb: nb.cells[1].metadata.update(values)


def set_output(cell, output, **values):
    """A change of an output."""
    return lambda nb: nb.cells[cell].outputs[output].update(values)


def print_in_first(place, name, text):
    """A change that inserts a stream among the outputs of the first code cell."""
    return lambda nb: nb.cells[1].outputs.insert(place, new_output("stream", name=name, text=text))


def prefix(cell, text):
    """A change that begins a cell with `text`."""
    return lambda nb: nb.cells[cell].update(source=text + nb.cells[cell].source)


PROGRESS = new_output("display_data", {"text/plain": "building x for the gpu ... 7.0 s"}, metadata=progress.MARK)
WIDGET = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}

# Each: the change and a part of the problem's message. --fix fixes these without a run ...
FIXABLE = {
    "another kernel": (lambda nb: nb.metadata.kernelspec.update(name="venv"), "kernelspec"),
    "kernel's display name": (lambda nb: nb.metadata.kernelspec.update(display_name="Python 3"), "kernelspec"),
    "no kernel": (lambda nb: nb.metadata.pop("kernelspec"), "kernelspec"),
    "Python's version": (lambda nb: nb.metadata.language_info.update(version="3.11.7"), "language_info"),
    "widget state": (lambda nb: nb.metadata.update(widgets={"state": {}}), "'widgets'"),
    "timestamps": (set_first(execution={"iopub.execute_input": "2026-01-01T00:00:00"}), "'execution'"),
    "folded output": (set_first(scrolled=True), "'scrolled'"),
    "no id": (lambda nb: nb.cells[1].pop("id"), "no id"),
    "an id twice": (lambda nb: nb.cells[2].update(id="first"), "taken"),
    "a stream in pieces": (print_in_first(1, "stdout", "more\n"), "cut into several"),
    "a mark for nbval": (prefix(1, "# NBVAL_CHECK_OUTPUT\n"), "should be a tag"),
    "a lesson without a link": (prefix(0, "# 05 A title\n\nAs in lesson 04."), "without a link"),
    "a widget": (lambda nb: nb.cells[3].outputs[0].data.update(WIDGET), "a widget"),
    "progress": (lambda nb: nb.cells[1].outputs.insert(0, PROGRESS), "progress, 'building x"),
    "home directory in a stream": (set_output(1, 0, text=f"from {ELSEWHERE}/torch\n"), "home directory"),
    "root's home in a result": (set_output(1, 1, data={"text/plain": f"'{ROOTS}/torch'"}), "home directory"),
    "home directory in a traceback": (set_output(2, 0, traceback=["a", f"File {ELSEWHERE}/x.py"]), "home directory"),
}
# ... and these it cannot fix.
UNFIXABLE = {
    "a cell that never ran": (lambda nb: nb.cells[1].update(execution_count=None, outputs=[]), "None, expected 1"),
    "cells run out of order": (lambda nb: nb.cells[3].update(execution_count=7), "7, expected 3"),
    "a result of another run": (set_output(1, 1, execution_count=9), "another execution"),
    "an empty cell": (lambda nb: nb.cells[3].update(source=" \n"), "empty code cell"),
    "an unexpected error": (lambda nb: nb.cells[2].metadata.pop("tags"), "ZeroDivisionError"),
    "an error that is missing": (lambda nb: nb.cells[2].update(outputs=[]), "raised nothing"),
    "an unknown kind of cell": (lambda nb: nb.cells[0].update(cell_type="prose"), "rules of the notebook format"),
}


@pytest.mark.parametrize("name", [*FIXABLE, *UNFIXABLE])
def test_each_rule_detects_its_violation(name):
    change, wording = (FIXABLE | UNFIXABLE)[name]
    notebook = sample()
    change(notebook)
    text = json.dumps(nbformat.v4.rwbase.split_lines(copy.deepcopy(notebook)), indent=1, sort_keys=True) + "\n"
    found = canonical.problems(text)
    assert any(wording in problem for problem in found), found
    if name in FIXABLE:
        fixed = canonical.fixed(text)
        assert canonical.problems(fixed) == []
        assert "x.py" not in text or "~/venv/lib/x.py" in fixed


def test_a_mark_becomes_a_tag_beside_others():
    notebook = sample()
    notebook.cells[2].source = "# NBVAL_SKIP\n1 / 0"
    cell = json.loads(canonical.fixed(canonical.to_text(notebook)))["cells"][2]
    assert (cell["source"], cell["metadata"]["tags"]) == (["1 / 0"], ["nbval-skip", "raises-exception"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n",
        lambda text: json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n",
        lambda text: json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n",
    ],
    ids=["no newline at the end", "two of them", "indent 2", "escaped letters"],
)
def test_another_form_of_json_is_found_and_fixed(spoil):
    text = canonical.to_text(sample())
    assert spoil(text) != text
    assert any("another form" in problem for problem in canonical.problems(spoil(text)))
    assert canonical.fixed(spoil(text)) == text


def test_an_older_format_is_found_and_fixed():
    notebook = json.loads(canonical.to_text(sample()))
    notebook["nbformat_minor"] = 4
    for cell in notebook["cells"]:
        del cell["id"]
    text = json.dumps(notebook)
    assert "4.4, not 4.5" in canonical.problems(text)[0]
    fixed = canonical.fixed(text)
    assert canonical.problems(fixed) == []
    assert fixed == canonical.fixed(text)  # the new ids are not random


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"nbformat": 4, "nbformat_minor": 5}'])
def test_a_file_that_is_not_a_notebook_is_a_problem(text):
    assert "not a notebook" in canonical.problems(text)[0]


def test_command_line(tmp_path, capsys):
    path = tmp_path / "a.ipynb"
    notebook = sample()
    notebook.metadata.language_info.version = "3.11"
    path.write_text(canonical.to_text(notebook), encoding="utf-8")
    assert canonical.main(["--check", str(tmp_path)]) == 1
    assert "language_info" in capsys.readouterr().out
    assert canonical.main(["--fix", str(path)]) == 0
    assert canonical.main(["--check", str(path)]) == 0
    notebook.cells[1].execution_count = 5
    path.write_text(canonical.to_text(notebook), encoding="utf-8")
    assert canonical.main(["--fix", str(path)]) == 1


def test_a_check_of_nothing_fails(tmp_path, capsys):
    assert canonical.main(["--check", str(tmp_path)]) == 1
    assert "no notebook" in capsys.readouterr().err
    assert canonical.main(["--check", str(tmp_path / "missing.ipynb")]) == 1
    assert "no such file" in capsys.readouterr().err
