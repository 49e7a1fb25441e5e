"""The notebooks' cells of the exercises: each `%%exercise NAME` cell, and the Markdown cell before it.

Their text is generated from the solutions. A lesson that lacks the cells of one of its exercises gets them.
"""

from collections.abc import Iterator
from pathlib import Path

import nbformat

from helpers.pages.notebooks.rules import to_text
from helpers.practice import registry

MAGIC = "%%exercise"
COMMAND = "python -m helpers starters --write"


def cell_source(name: str) -> str:
    """The whole text of the notebook's cell for exercise `name`."""
    return f"{MAGIC} {name}\n{registry.read(name).cell_text}".rstrip("\n")


def text_source(name: str) -> str:
    """The Markdown of the cell before it: title, specification, time."""
    marked = registry.read(name)
    return f"### {marked.number}. {marked.title}\n\n{marked.specification} (About {marked.minutes} minutes.)"


def named_in(source: str) -> str | None:
    """The exercise that a cell with this source belongs to, or None."""
    head = source.split("\n", 1)[0].split()
    return head[1] if len(head) == 2 and head[0] == MAGIC else None


def stale(notebooks: Path) -> Iterator[str]:
    """What differs from the text generated from the solutions, in words."""
    listed = {exercise.name: exercise for exercise in registry.exercises()}
    for path, notebook in _notebooks(notebooks):
        for text, cell, name in _cells(notebook):
            if name not in listed:
                yield f"{path.name}: there is no exercise {name}"
                continue
            if cell.source != cell_source(name):
                yield f"{path.name}: the cell of exercise {name} is not its starter"
            if text is None or text.source != text_source(name):
                yield f"{path.name}: the cell before exercise {name} is not its specification"
        for name in _missing(path, notebook):
            yield f"{path.name}: there is no cell of exercise {name}"


def write(notebooks: Path) -> list[str]:
    """Writes the text of the cells in the notebooks, and cells that they lack. Returns the names of changed files."""
    changed = []
    for path, notebook in _notebooks(notebooks):
        before = [cell.source for cell in notebook.cells]
        for name in _missing(path, notebook):
            _insert(notebook, name)
        for text, cell, name in _cells(notebook):
            cell.source = cell_source(name)
            if text is not None:
                text.source = text_source(name)
        if [cell.source for cell in notebook.cells] != before:
            path.write_text(to_text(notebook), encoding="utf-8")
            changed.append(f"notebooks/{path.name}")
    return changed


def _missing(path: Path, notebook: nbformat.NotebookNode) -> list[str]:
    """The exercises of a lesson's number that it has no cell of."""
    there = {name for _, _, name in _cells(notebook)}
    return [e.name for e in registry.exercises() if path.name.startswith(f"{e.lesson}_") and e.name not in there]


def _insert(notebook: nbformat.NotebookNode, name: str) -> None:
    """Adds both cells of an exercise between those of the exercises before and after it; they have not run yet."""
    others = [(registry.read(other).number, i) for i, cell in enumerate(notebook.cells)
              if (other := named_in(cell.source))]  # fmt: skip
    number = registry.read(name).number
    before, after = [i + 1 for n, i in others if n < number], [i - 1 for n, i in others if n > number]
    at = before[-1] if before else after[0] if after else len(notebook.cells)
    label = f"exercise-{name}"
    notebook.cells[at:at] = [
        nbformat.v4.new_markdown_cell(text_source(name), id=f"{label}-text"),
        nbformat.v4.new_code_cell(cell_source(name), id=label, metadata={"tags": ["nbval-check-output"]}),
    ]


def _cells(notebook: nbformat.NotebookNode) -> Iterator[tuple]:
    """Of each exercise's cell: the Markdown cell before it or None, the cell, and the name of the exercise."""
    previous = None
    for cell in notebook.cells:
        if name := named_in(cell.source):
            yield previous if previous is not None and previous.cell_type == "markdown" else None, cell, name
        previous = cell


def _notebooks(folder: Path) -> Iterator[tuple[Path, nbformat.NotebookNode]]:
    for path in sorted(folder.glob("*.ipynb")):
        yield path, nbformat.read(path, as_version=4)


def write_or_check(notebooks: Path, write_them: bool) -> int:
    """Writes or checks the cells, and prints what differed. Returns 1 if a check found something."""
    if write_them:
        print("\n".join(write(notebooks)) or "nothing to change")
        return 0
    problems = list(stale(notebooks))
    print("\n".join([*problems, f"run: {COMMAND}"] if problems else ["all cells are up to date"]))
    return 1 if problems else 0
