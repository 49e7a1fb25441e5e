"""A notebook of an assignment, for platforms that grade notebooks: a question for each exercise, without solutions."""

from collections.abc import Iterator
from dataclasses import dataclass

import nbformat
import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from helpers.pages.notebooks.rules import KERNELSPEC, LANGUAGE_INFO
from helpers.practice.cells import cell_source, text_source
from helpers.teaching.handout.assignments import Assignment

OTTER_TEST = """def test_{name}(env):
    from helpers.teaching.classroom.notebook_answers import require

    print(require("{name}"))
"""
GRADED = "# This cell is replaced by the verdict on the answer above."


@dataclass(frozen=True)
class Question:
    """An exercise in the notebook: its text, and the starter of its cell with `%%exercise NAME` as the first line."""

    name: str
    points: float
    text: str
    answer: str


def questions(assignment: Assignment) -> Iterator[Question]:
    """The exercises of an assignment, in its order."""
    for name, worth in assignment.scheme.exercises.items():
        yield Question(name, worth.total, text_source(name), cell_source(name))


def introduction(assignment: Assignment) -> str:
    """The first cell."""
    due = f" Hand in until {assignment.due:%Y-%m-%d %H:%M}." if assignment.due else ""
    return (
        f"# {assignment.scheme.title}\n\nReplace `YOUR CODE HERE` and run the cell: it builds your code, checks it on "
        f'many shapes, and names the first that is wrong. `hint("NAME")` shows a hint.{due}'
    )


def for_nbgrader(assignment: Assignment) -> NotebookNode:
    """The notebook for nbgrader: answer cells that students edit, each before a locked cell that has the points.

    The metadata is nbgrader's, version 3 of its schema:
    https://nbgrader.readthedocs.io/en/stable/contributor_guide/metadata.html (read in nbgrader 0.9.6, 2026-11-23).
    """
    cells = [
        _marked(new_markdown_cell(introduction(assignment)), "introduction"),
        _marked(new_code_cell("import helpers"), "set_up"),
    ]
    for question in questions(assignment):
        cells += [
            _marked(new_markdown_cell(question.text), f"text_{question.name}"),
            _marked(new_code_cell(question.answer), f"answer_{question.name}", solution=True),
            _marked(new_code_cell(GRADED), question.name, points=question.points),
        ]
    return _notebook(cells)


def for_otter(assignment: Assignment) -> NotebookNode:
    """The master notebook for `otter assign`: raw cells mark the parts of each question.

    Its solutions are the starters, which otter leaves as they are: no folder that otter writes holds a solution.
    The format: https://otter-grader.readthedocs.io/en/latest/otter_assign/notebook_format.html (tried with otter-grader
    7.0.0, 2026-11-23).
    """
    settings = {
        "name": assignment.name,
        "run_tests": False,
        "export_cell": False,
        "tests": {"ok_format": False},
        "generate": {"show_stdout": True},
    }
    cells = [
        new_raw_cell("# ASSIGNMENT CONFIG\n" + yaml.safe_dump(settings, sort_keys=False)),
        new_markdown_cell(introduction(assignment)),
        new_code_cell("import helpers"),
    ]
    for question in questions(assignment):
        about = yaml.safe_dump({"name": question.name, "points": question.points}, sort_keys=False)
        cells += [
            new_raw_cell(f"# BEGIN QUESTION\n{about}"),
            new_markdown_cell(question.text),
            new_raw_cell("# BEGIN SOLUTION"),
            new_code_cell(question.answer),
            new_raw_cell("# END SOLUTION"),
            new_raw_cell("# BEGIN TESTS"),
            new_code_cell(OTTER_TEST.format(name=question.name)),
            new_raw_cell("# END TESTS"),
            new_raw_cell("# END QUESTION"),
        ]
    for i, cell in enumerate(cells):
        cell.id = f"cell-{i}"
    return _notebook(cells)


def _marked(cell: NotebookNode, name: str, solution: bool = False, points: float | None = None) -> NotebookNode:
    """The cell with nbgrader's metadata. A cell with points is graded; all but solutions are locked."""
    cell.id = name.replace("_", "-")[:64]
    graded = points is not None
    cell.metadata["nbgrader"] = {
        "schema_version": 3,
        "grade_id": name,
        "grade": graded,
        "solution": solution,
        "locked": not solution,
        "task": False,
        **({"points": points} if graded else {}),
    }
    return cell


def _notebook(cells: list[NotebookNode]) -> NotebookNode:
    notebook = new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC, "language_info": LANGUAGE_INFO})
    nbformat.validate(notebook)
    return notebook
