"""`python -m helpers starters`: what is generated from the solutions, which are the one source of an exercise.

That is kernels/exercises/* and, in the notebooks, each `%%exercise NAME` cell and the text in the cell before it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from helpers.practice import registry

MAGIC = "%%exercise"
HEADING = re.compile(r"^## Exercises[ \t]*$", re.MULTILINE)
NEXT_HEADING = re.compile(r"^## ", re.MULTILINE)
COMMAND = "python -m helpers starters --write"


def cell_source(name: str) -> str:
    """The whole text of the notebook's cell for exercise `name`."""
    return f"{MAGIC} {name}\n{registry.read(name).cell_text}".rstrip("\n")


def text_source(name: str) -> str:
    """The Markdown of the notebook's cell before it: title, time, specification."""
    marked = registry.read(name)
    return f"### {marked.number}. {marked.title}\n\n{marked.specification} (About {marked.minutes} minutes.)"


def named_in(source: str) -> str | None:
    """The exercise that a cell is for; None if it is for none."""
    head = source.split("\n", 1)[0].split()
    return head[1] if len(head) == 2 and head[0] == MAGIC else None


def stale(notebooks: Path) -> Iterator[str]:
    """What is not as it is generated, in words."""
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
                yield f"{path.name}: before the cell of exercise {name} stands not its specification"


def write(notebooks: Path) -> list[str]:
    """Writes all starters, and the text of cells that are there. Returns what was changed."""
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
            from helpers.notebooks.canonical import to_text

            path.write_text(to_text(notebook), encoding="utf-8")
            changed.append(f"notebooks/{path.name}")
    return changed


def insert(path: Path, names: list[str]) -> list[str]:
    """Puts the cells of exercises into the notebook at `path`, below its heading `## Exercises`, in their order.

    names   of exercises; if there are none, all those of the lesson that the notebook's name begins with

    Cells that are there are refreshed and stay in their place. Returns the names whose cells were changed or inserted.
    Raises UnknownExercise, and ValueError if the notebook has no such heading or the lesson no exercises.
    """
    import nbformat

    from helpers.notebooks.canonical import to_text

    notebook = nbformat.read(path, as_version=4)
    wanted = [registry.find(name).name for name in names]
    wanted = wanted or [e.name for e in registry.exercises() if path.name.startswith(f"{e.lesson}_")]
    if not wanted:
        raise ValueError(f"{path.name}: there are no exercises for a lesson of this name")
    place = _end_of_heading(notebook, path.name)
    metadata = {"tags": ["nbval-check-output"]}  # an unsolved cell says so, and nothing else
    changed = []
    for name in sorted(wanted, key=[e.name for e in registry.exercises()].index):
        at = next((i for i, cell in enumerate(notebook.cells) if named_in(cell.source) == name), None)
        before = notebook.cells[at - 1] if at else None
        if at is None:
            at = place
            notebook.cells.insert(at, nbformat.v4.new_code_cell("", id=f"exercise-{name}", metadata=metadata))
        if before is None or before.cell_type != "markdown":
            notebook.cells.insert(at, nbformat.v4.new_markdown_cell("", id=f"exercise-{name}-text"))
            at += 1
        text, cell = notebook.cells[at - 1 : at + 1]
        if (text.source, cell.source) != (text_source(name), cell_source(name)):
            text.source, cell.source = text_source(name), cell_source(name)
            changed.append(name)
        place = max(place, at + 1)
    if changed:
        path.write_text(to_text(notebook), encoding="utf-8")
    return changed


def _end_of_heading(notebook, name: str) -> int:
    """Where the section `## Exercises` goes on after its first cell, which is cut where another section begins."""
    import nbformat

    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and (heading := HEADING.search(cell.source)):
            rest = NEXT_HEADING.search(cell.source, heading.end())
            if rest:
                after = nbformat.v4.new_markdown_cell(cell.source[rest.start() :].strip(), id=f"{cell.id}-after")
                cell.source = cell.source[: rest.start()].strip()
                notebook.cells.insert(i + 1, after)
            return i + 1
    raise ValueError(f"{name}: there is no heading '## Exercises'")


def _cells(notebook) -> Iterator[tuple]:
    """The cell of each exercise: the Markdown cell before it (None if there is none), the cell, the exercise's name."""
    previous = None
    for cell in notebook.cells:
        if name := named_in(cell.source):
            yield previous if previous is not None and previous.cell_type == "markdown" else None, cell, name
        previous = cell


def _notebooks(folder: Path) -> Iterator[tuple[Path, object]]:
    import nbformat

    for path in sorted(folder.glob("*.ipynb")):
        yield path, nbformat.read(path, as_version=4)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers starters", description=__doc__.split("\n\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the starters and the cells")
    action.add_argument("--check", action="store_true", help="exit with 1 if one of them is not as generated")
    action.add_argument("--cell", metavar="NAME", help="print the notebook's cell for an exercise")
    action.add_argument("--text", metavar="NAME", help="print the Markdown of the cell before it")
    action.add_argument("--into", metavar="NOTEBOOK", type=Path, help="insert or refresh the cells of exercises there")
    parser.add_argument("names", metavar="NAME", nargs="*", help="for --into; by default all of the notebook's lesson")
    notebooks = registry.KERNELS.parent / "notebooks"
    parser.add_argument("--notebooks", type=Path, default=notebooks, help="the folder with the notebooks")
    options = parser.parse_args(arguments)
    if options.names and not options.into:
        parser.error("names are for --into")
    if options.cell or options.text or options.into:
        try:
            if options.into:
                print(", ".join(insert(options.into, options.names)) or "nothing to change")
            else:
                print(cell_source(options.cell) if options.cell else text_source(options.text))
        except (ValueError, OSError) as error:  # no such exercise, file or heading
            print(error, file=sys.stderr)
            return 2
        return 0
    if options.write:
        print("\n".join(write(options.notebooks)) or "nothing to change")
        return 0
    problems = list(stale(options.notebooks))
    print("\n".join([*problems, f"run: {COMMAND}"] if problems else ["all as generated"]))
    return 1 if problems else 0
