"""`python -m helpers starters`: writes or checks the starters and cells that are generated from the solutions.

The starters are kernels/exercises/*. In the notebooks, each `%%exercise NAME` cell and the Markdown cell before it are
generated.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import nbformat

from helpers.pages.notebooks.rules import to_text
from helpers.paths import NOTEBOOKS
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
    listed = registry.exercises()
    for exercise in listed:
        path = exercise.starter
        if not path.is_file() or path.read_text(encoding="utf-8") != registry.read(exercise.name).starter:
            yield f"kernels/exercises/{path.name} is not the starter of its solution"
    for path in sorted((listed[0].starter.parent).glob("*")):
        if path not in {e.starter for e in listed}:
            yield f"kernels/exercises/{path.name} has no solution"
    names = {e.name for e in listed}
    for path, notebook in _notebooks(notebooks):
        for text, cell, name in _cells(notebook):
            if name not in names:
                yield f"{path.name}: there is no exercise {name}"
                continue
            if cell.source != cell_source(name):
                yield f"{path.name}: the cell of exercise {name} is not its starter"
            if text is None or text.source != text_source(name):
                yield f"{path.name}: the cell before exercise {name} is not its specification"


def write(notebooks: Path) -> list[str]:
    """Writes all starters, and the text of the cells in the notebooks. Returns the names of the changed files."""
    changed = []
    for exercise in registry.exercises():
        text = registry.read(exercise.name).starter
        if not exercise.starter.is_file() or exercise.starter.read_text(encoding="utf-8") != text:
            exercise.starter.parent.mkdir(exist_ok=True)
            exercise.starter.write_text(text, encoding="utf-8")
            changed.append(f"kernels/exercises/{exercise.starter.name}")
    for path, notebook in _notebooks(notebooks):
        before = [cell.source for cell in notebook.cells]
        for text, cell, name in _cells(notebook):
            cell.source = cell_source(name)
            if text is not None:
                text.source = text_source(name)
        if [cell.source for cell in notebook.cells] != before:
            path.write_text(to_text(notebook), encoding="utf-8")
            changed.append(f"notebooks/{path.name}")
    return changed


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


def main(arguments: list[str]) -> int:
    """Writes or checks the generated text. Returns 1 if --check finds any that differs."""
    parser = argparse.ArgumentParser(prog="python -m helpers starters", description=__doc__.split("\n\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the starters and the cells")
    action.add_argument("--check", action="store_true", help="exit with 1 if one of them differs from its solution")
    parser.add_argument("--notebooks", type=Path, default=NOTEBOOKS, help="the folder with the notebooks")
    options = parser.parse_args(arguments)
    if options.write:
        print("\n".join(write(options.notebooks)) or "nothing to change")
        return 0
    problems = list(stale(options.notebooks))
    print("\n".join([*problems, f"run: {COMMAND}"] if problems else ["all starters and cells are up to date"]))
    return 1 if problems else 0
