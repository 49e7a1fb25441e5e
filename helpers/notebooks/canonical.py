"""The one form in which notebooks are committed: `python -m helpers.notebooks.canonical --check|--fix PATHS`.

Running a notebook changes it: timestamps, the Python version, cell counts, streams cut at random places. Committed like
that, every run looks like an edit. Here outputs are kept, since readers on the web see them, and all else is brought
to one form. What cannot be repaired without running the notebook again is reported by --fix too: execution counts
that are not 1, 2, 3, ..., errors, cells that never ran.

A rule is a function of the notebook that yields the problems that it finds. `problems` applies them all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE_INFO = {"name": "python"}
NOTEBOOK_KEYS = {"kernelspec", "language_info", "accelerator", "colab"}  # the last two ask Colab for a GPU
CELL_KEYS = {"tags", "jupyter", "nbgrader", "deletable", "editable"}  # what a person sets; a run sets others
WIDGETS = re.compile(r"application/vnd\.jupyter\.widget")
HOME = re.compile(r"/(?:home|Users)/[^/\s'\"<>:]+|(?<![\w.~])/root(?=/)")
# What Progress prints of builds: whether there is any depends on what was built before.
BUILDING = re.compile(r"^(?:building|preparing) .+ \.\.\. \d+\.\d s\n", re.MULTILINE)
MAY_RAISE = "raises-exception"


def code_cells(notebook) -> Iterator[tuple[int, dict]]:
    """The code cells, each with its position among all cells."""
    return ((index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code")


def texts(output) -> Iterator[tuple[dict, str]]:
    """Where an output holds text for people: pairs (container, key). Images and other binary data are left out."""
    if output.output_type == "stream":
        yield output, "text"
    elif output.output_type == "error":
        yield from ((output, key) for key in ("evalue", "traceback"))
    else:
        yield from ((output.data, mime) for mime in output.data if mime.startswith("text/"))


def text_of(container, key) -> str:
    value = container[key]
    return value if isinstance(value, str) else "\n".join(value)


# ----------------------------------------------------------------------------------------------------------------------
# Rules


def check_metadata(notebook) -> Iterator[str]:
    if notebook.metadata.get("kernelspec") != KERNELSPEC:
        yield f"metadata: kernelspec is not {KERNELSPEC}"
    if notebook.metadata.get("language_info") != LANGUAGE_INFO:
        yield f"metadata: language_info is not {LANGUAGE_INFO}"
    for key in sorted(set(notebook.metadata) - NOTEBOOK_KEYS):
        yield f"metadata: {key!r} does not belong in a committed notebook"
    for index, cell in enumerate(notebook.cells):
        for key in sorted(set(cell.metadata) - CELL_KEYS):
            yield f"cell {index}: metadata {key!r} does not belong in a committed notebook"


def check_ids(notebook) -> Iterator[str]:
    seen = set()
    for index, cell in enumerate(notebook.cells):
        identity = cell.get("id")
        if not identity:
            yield f"cell {index}: no id"
        elif identity in seen:
            yield f"cell {index}: its id {identity!r} is taken by an earlier cell"
        seen.add(identity)


def check_run(notebook) -> Iterator[str]:
    for expected, (index, cell) in enumerate(code_cells(notebook), start=1):
        if not cell.source.strip():
            yield f"cell {index}: an empty code cell"
        if cell.execution_count != expected:
            yield f"cell {index}: execution count {cell.execution_count}, expected {expected}; run all cells in order"
        for output in cell.outputs:
            if output.output_type == "execute_result" and output.execution_count != cell.execution_count:
                yield f"cell {index}: its result has another execution count, {output.execution_count}"


def check_errors(notebook) -> Iterator[str]:
    for index, cell in code_cells(notebook):
        raised = [output.ename for output in cell.outputs if output.output_type == "error"]
        tagged = MAY_RAISE in cell.metadata.get("tags", [])
        if raised and not tagged:
            yield f"cell {index}: ended in {raised[0]} and has no tag {MAY_RAISE!r}"
        if tagged and not raised:
            yield f"cell {index}: has the tag {MAY_RAISE!r} and raised nothing"


def check_outputs(notebook) -> Iterator[str]:
    for index, cell in code_cells(notebook):
        previous = None
        for output in cell.outputs:
            name = output.get("name") if output.output_type == "stream" else None
            if name is not None and name == previous:
                yield f"cell {index}: {name} is cut into several outputs"
            previous = name
            if name == "stderr" and (found := BUILDING.search(output.text)):
                yield f"cell {index}: progress of a build, {found.group().strip()!r}: not everybody's run has it"
            if any(WIDGETS.match(mime) for mime in output.get("data", {})):
                yield f"cell {index}: a widget, which a page cannot show"
            for container, key in texts(output):
                found = HOME.search(text_of(container, key))
                if found:
                    yield f"cell {index}: an output names the home directory {found.group()!r}"


RULES = (check_metadata, check_run, check_errors, check_outputs)  # for a notebook with ids


def to_text(notebook) -> str:
    """The file for a notebook: JSON with indent 1, sorted keys, plain Unicode, a newline at the end."""
    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"


def problems(text: str) -> list[str]:
    """What keeps the text of an .ipynb file from being canonical, in words; empty when it is."""
    try:
        data = json.loads(text)
    except ValueError as error:
        return [f"not a notebook: {error}"]
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        return ["not a notebook: there is no list of cells"]
    if (data.get("nbformat"), data.get("nbformat_minor")) != (4, 5):
        return [f"in notebook format {data.get('nbformat')}.{data.get('nbformat_minor')}, not 4.5"]
    notebook = nbformat.v4.to_notebook_json(data)
    found = list(check_ids(notebook))
    if found:
        return found  # the check of the format would stumble over them with less clear words
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        return [f"breaks the rules of the notebook format: {error.message}"]
    found = [problem for rule in RULES for problem in rule(notebook)]
    if not found and text != to_text(notebook):
        found.append("JSON in another form: indent 1, sorted keys, a newline at the end")
    return found


# ----------------------------------------------------------------------------------------------------------------------
# Repair


def fixed(text: str) -> str:
    """The text of an .ipynb file with everything in canonical form that can be so without running it again."""
    data = json.loads(text)
    # Within format 4, ids are the only difference that matters here, and nbformat would draw them at random.
    notebook = nbformat.v4.to_notebook_json(data) if data["nbformat"] == 4 else nbformat.reads(text, as_version=4)
    notebook.nbformat_minor = 5
    notebook.metadata = nbformat.from_dict(
        {key: value for key, value in notebook.metadata.items() if key in NOTEBOOK_KEYS}
        | {"kernelspec": KERNELSPEC, "language_info": LANGUAGE_INFO}
    )
    taken: set[str] = set()
    for index, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict({key: value for key, value in cell.metadata.items() if key in CELL_KEYS})
        if not cell.get("id") or cell.id in taken:  # derived from the place and the text: the same on every machine
            cell.id = hashlib.sha256(f"{index}\0{cell.source}".encode()).hexdigest()[:8]
        taken.add(cell.id)
        if cell.cell_type == "code":
            cell.outputs = fixed_outputs(cell.outputs)
    return to_text(notebook)


def fixed_outputs(outputs: list) -> list:
    """Outputs with streams joined, widgets and the progress of builds dropped, and home directories written as ~."""
    kept: list = []
    for output in outputs:
        if output.get("name") == "stderr":
            output.text = BUILDING.sub("", output.text)
            if not output.text:
                continue
        for mime in [mime for mime in output.get("data", {}) if WIDGETS.match(mime)]:
            del output.data[mime]
        if "data" in output and not output.data:
            continue
        for container, key in texts(output):
            value = container[key]
            container[key] = HOME.sub("~", value) if isinstance(value, str) else [HOME.sub("~", v) for v in value]
        last = kept[-1] if kept else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            last["text"] += output.text
        else:
            kept.append(output)
    return kept


# ----------------------------------------------------------------------------------------------------------------------
# Command line


def find_notebooks(paths: list[Path]) -> list[Path]:
    """The notebooks at the paths given, folders searched without their checkpoint copies.

    Raises FileNotFoundError where a path does not exist or nothing is found: a check of nothing is no check.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"no such file or folder: {path}")
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        found += [notebook for notebook in inside if ".ipynb_checkpoints" not in notebook.parts]
    if not found:
        raise FileNotFoundError(f"no notebook in {', '.join(map(str, paths))}")
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m helpers.notebooks.canonical", description="The form of committed notebooks."
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="say what is not canonical; exit 1 if anything is not")
    action.add_argument("--fix", action="store_true", help="repair in place; exit 1 if a new run is needed")
    parser.add_argument("paths", nargs="+", type=Path, help="notebooks or folders of them")
    options = parser.parse_args(arguments)
    try:
        notebooks = find_notebooks(options.paths)
    except FileNotFoundError as error:
        print(f"canonical: {error}", file=sys.stderr)
        return 1
    count = 0
    for path in notebooks:
        text = path.read_text(encoding="utf-8")
        if options.fix:
            repaired = fixed(text)
            if repaired != text:
                path.write_text(repaired, encoding="utf-8")
                print(f"{path}: repaired")
            text = repaired
        for problem in problems(text):
            print(f"{path}: {problem}")
            count += 1
    if count and options.check:
        print("What no run of the cells decides is repaired by: python -m helpers.notebooks.canonical --fix notebooks")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
