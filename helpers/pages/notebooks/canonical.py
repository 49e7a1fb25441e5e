"""The one form in which notebooks are committed: `python -m helpers.pages.notebooks.canonical --check|--fix PATHS`.

Running a notebook changes it: timestamps, the Python version, cell counts, streams cut at random places. Committed as
they are, two runs would look like an edit. So outputs are kept, for readers on the web, and everything else is brought
to one form. Problems that only a new run can fix are reported by --fix too: execution counts that are not 1, 2, 3, ...,
errors, cells that never ran.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import nbformat

from helpers.pages.notebooks import links
from helpers.pages.notebooks.rules import (
    CELL_KEYS,
    HOME,
    KERNELSPEC,
    LANGUAGE_INFO,
    MARK,
    NOTEBOOK_KEYS,
    WIDGETS,
    problems,
    texts,
    to_text,
)
from kernel_xray.machine.progress import MARK as MARK_OF_PROGRESS


def fixed(text: str) -> str:
    """The text of an .ipynb file in canonical form, as far as that is possible without running it again."""
    data = json.loads(text)
    # Within format 4 only the ids differ, and nbformat's upgrade would draw them at random.
    notebook = nbformat.v4.to_notebook_json(data) if data["nbformat"] == 4 else nbformat.reads(text, as_version=4)
    notebook.nbformat_minor = 5
    notebook.metadata = nbformat.from_dict(
        {key: value for key, value in notebook.metadata.items() if key in NOTEBOOK_KEYS}
        | {"kernelspec": KERNELSPEC, "language_info": LANGUAGE_INFO}
    )
    own, taken = links.number_of(notebook), set[str]()
    for index, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict({key: value for key, value in cell.metadata.items() if key in CELL_KEYS})
        if not cell.get("id") or cell.id in taken:  # derived from index and text: the same on every machine
            cell.id = hashlib.sha256(f"{index}\0{cell.source}".encode()).hexdigest()[:8]
        taken.add(cell.id)
        if mark := MARK.match(cell.source):
            tag = mark.group(1).lower().replace("_", "-")
            cell.source = cell.source[mark.end() :]
            cell.metadata.tags = sorted({*cell.metadata.get("tags", ()), tag})
        if own and cell.cell_type == "markdown":
            cell.source = links.linked(cell.source, own)
        if cell.cell_type == "code":
            cell.outputs = fixed_outputs(cell.outputs)
    return to_text(notebook)


def fixed_outputs(outputs: list) -> list:
    """Outputs with joined streams, without widgets and progress, and with ~ for home directories."""
    kept: list = []
    for output in outputs:
        if output.get("metadata") == MARK_OF_PROGRESS:
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
    return [output for output in kept if output.get("text") != ""]


def find_notebooks(paths: list[Path]) -> list[Path]:
    """The notebooks at the given paths, in folders without Jupyter's checkpoints.

    Raises FileNotFoundError if a path does not exist or nothing is found: checking nothing must not succeed.
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
        prog="python -m helpers.pages.notebooks.canonical", description="Check or fix the form of committed notebooks."
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="report what is not canonical; exit 1 if anything is not")
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
        print("To fix what needs no new run of the cells: python -m helpers.pages.notebooks.canonical --fix notebooks")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
