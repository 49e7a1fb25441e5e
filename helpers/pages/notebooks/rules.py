"""The canonical form of a committed notebook: its constants, and the rules that find what breaks it.

A rule is a function of the notebook that yields the problems that it finds. `problems` applies them all.
"""

import json
import re
from collections.abc import Iterator

import nbformat
from nbformat import NotebookNode

from helpers.pages.notebooks import links
from kernel_xray.machine.progress import MARK as MARK_OF_PROGRESS

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE_INFO = {"name": "python"}
NOTEBOOK_KEYS = {"kernelspec", "language_info", "accelerator", "colab"}  # the last two ask Colab for a GPU
CELL_KEYS = {"tags", "jupyter", "nbgrader", "deletable", "editable"}  # set by people; runs set others
WIDGETS = re.compile(r"application/vnd\.jupyter\.widget")
HOME = re.compile(r"/(?:home|Users)/[^/\s'\"<>:]+|(?<![\w.~])/root(?=/)")
MAY_RAISE = "raises-exception"
MARK = re.compile(r"\A# (NBVAL_\w+)\n")  # for nbval; a tag says the same, and no reader has to wonder about it


def code_cells(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """The code cells, each with its index among all cells."""
    return ((index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code")


def texts(output: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """The texts of an output as pairs (container, key); images and other binary data are left out."""
    if output.output_type == "stream":
        yield output, "text"
    elif output.output_type == "error":
        yield from ((output, key) for key in ("evalue", "traceback"))
    else:
        yield from ((output.data, mime) for mime in output.data if mime.startswith("text/"))


def text_of(container: NotebookNode, key: str) -> str:
    value = container[key]
    return value if isinstance(value, str) else "\n".join(value)


def check_metadata(notebook: NotebookNode) -> Iterator[str]:
    if notebook.metadata.get("kernelspec") != KERNELSPEC:
        yield f"metadata: kernelspec is not {KERNELSPEC}"
    if notebook.metadata.get("language_info") != LANGUAGE_INFO:
        yield f"metadata: language_info is not {LANGUAGE_INFO}"
    for key in sorted(set(notebook.metadata) - NOTEBOOK_KEYS):
        yield f"metadata: {key!r} does not belong in a committed notebook"
    for index, cell in enumerate(notebook.cells):
        for key in sorted(set(cell.metadata) - CELL_KEYS):
            yield f"cell {index}: metadata {key!r} does not belong in a committed notebook"


def check_ids(notebook: NotebookNode) -> Iterator[str]:
    seen = set()
    for index, cell in enumerate(notebook.cells):
        identity = cell.get("id")
        if not identity:
            yield f"cell {index}: no id"
        elif identity in seen:
            yield f"cell {index}: its id {identity!r} is taken by an earlier cell"
        seen.add(identity)


def check_run(notebook: NotebookNode) -> Iterator[str]:
    for expected, (index, cell) in enumerate(code_cells(notebook), start=1):
        if not cell.source.strip():
            yield f"cell {index}: an empty code cell"
        if cell.execution_count != expected:
            yield f"cell {index}: execution count {cell.execution_count}, expected {expected}; run all cells in order"
        for output in cell.outputs:
            if output.output_type == "execute_result" and output.execution_count != cell.execution_count:
                yield f"cell {index}: its result has another execution count, {output.execution_count}"


def check_errors(notebook: NotebookNode) -> Iterator[str]:
    for index, cell in code_cells(notebook):
        raised = [output.ename for output in cell.outputs if output.output_type == "error"]
        tagged = MAY_RAISE in cell.metadata.get("tags", [])
        if raised and not tagged:
            yield f"cell {index}: ended in {raised[0]} and has no tag {MAY_RAISE!r}"
        if tagged and not raised:
            yield f"cell {index}: has the tag {MAY_RAISE!r} and raised nothing"


def check_sources(notebook: NotebookNode) -> Iterator[str]:
    own = links.number_of(notebook)
    for index, cell in enumerate(notebook.cells):
        if found := MARK.match(cell.source):
            yield f"cell {index}: begins with a mark for nbval, {found.group(1)}, which should be a tag"
        if own and cell.cell_type == "markdown" and links.linked(cell.source, own) != cell.source:
            yield f"cell {index}: names another lesson without a link to it"


def check_outputs(notebook: NotebookNode) -> Iterator[str]:
    for index, cell in code_cells(notebook):
        previous = None
        for output in cell.outputs:
            name = output.get("name") if output.output_type == "stream" else None
            if name is not None and name == previous:
                yield f"cell {index}: {name} is cut into several outputs"
            previous = name
            if output.get("metadata") == MARK_OF_PROGRESS:
                yield f"cell {index}: progress, {output.data['text/plain']!r}: not every run has it"
            if any(WIDGETS.match(mime) for mime in output.get("data", {})):
                yield f"cell {index}: a widget, which a page cannot show"
            for container, key in texts(output):
                found = HOME.search(text_of(container, key))
                if found:
                    yield f"cell {index}: an output names the home directory {found.group()!r}"


RULES = (check_metadata, check_sources, check_run, check_errors, check_outputs)  # for a notebook with ids


def to_text(notebook: NotebookNode) -> str:
    """The file for a notebook: JSON with indent 1, sorted keys, plain Unicode, a newline at the end."""
    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"


def problems(text: str) -> list[str]:
    """Why the text of an .ipynb file is not canonical, in words; empty if it is."""
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
        return found  # nbformat's own message about ids is less clear
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        return [f"breaks the rules of the notebook format: {error.message}"]
    found = [problem for rule in RULES for problem in rule(notebook)]
    if not found and text != to_text(notebook):
        found.append("JSON in another form: indent 1, sorted keys, a newline at the end")
    return found
