"""`python -m helpers colab OUT --repository OWNER/NAME`: the lessons as Colab and Kaggle open them.

Each has a badge and a first code cell that clones the course and finds out what the machine can run. Links lead to the
other lessons in Colab, and to the files on GitHub. The workflow colab.yml pushes the folder as the branch `colab`.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from helpers.pages.notebooks.rules import to_text
from helpers.paths import NOTEBOOKS, ROOT

GITHUB = "https://github.com"
BRANCH = "colab"
MARK = "colab-start"  # the id of the cell that is added
START = """\
# Run this first: it fetches the course, and finds out what this machine can run.
import os
import subprocess
import sys

if not os.path.isdir("../kernels"):
    if not os.path.isdir("kernel-ladder"):
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", "{clone}", "kernel-ladder"], check=True)
    os.chdir("kernel-ladder/notebooks")
sys.path.insert(0, os.path.dirname(os.getcwd()))

from helpers.pages.front.hosted import prepare

prepare()"""
# A badge's image and the address that opens a notebook, as the services document them:
# https://github.com/googlecolab/colabtools/blob/main/notebooks/colab-github-demo.ipynb (read in November 2026).
COLAB = "https://colab.research.google.com/github/{repository}/blob/{branch}/notebooks/{name}"
COLAB_BADGE = "https://colab.research.google.com/assets/colab-badge.svg"
KAGGLE = "https://kaggle.com/kernels/welcome?src=https://github.com/{repository}/blob/{branch}/notebooks/{name}"
# The form is that of https://github.com/binder-examples/jupyterlab (read in November 2026).
BINDER = "https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/notebooks/00_start_here.ipynb"
BINDER_BADGE = "https://mybinder.org/badge_logo.svg"
LINK = re.compile(r"\]\((?!\w+:)([\w./-]+(?:#[\w-]+)?)\)")


def for_colab(notebook: NotebookNode, name: str, repository: str, clone: str) -> NotebookNode:
    """The lesson `name` with its badge, the cell START and absolute links; outputs stay those of the recorded run.

    repository   OWNER/NAME on GitHub
    clone        the address that git clones the course from
    """

    def absolute(link: re.Match) -> str:
        target, _, anchor = link[1].partition("#")
        if re.fullmatch(r"\d\d_\w+\.ipynb", target):
            found = COLAB.format(repository=repository, branch=BRANCH, name=target)
        else:
            found = f"{GITHUB}/{repository}/blob/main/{(NOTEBOOKS / target).resolve().relative_to(ROOT).as_posix()}"
        return f"]({found}{'#' + anchor if anchor else ''})"

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(absolute, cell.source)
    title = notebook.cells[0]
    title.source = f"{badge(name, repository)}\n\n{title.source}"
    start = new_code_cell(START.format(clone=clone))
    start.id = MARK
    notebook.cells.insert(1, start)
    notebook.metadata |= {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
    return notebook


def badge(name: str, repository: str) -> str:
    return f"[![Open in Colab]({COLAB_BADGE})]({COLAB.format(repository=repository, branch=BRANCH, name=name)})"


def page(titles: dict[str, str], repository: str) -> str:
    """README.md of the branch. titles: file name of each lesson -> its title."""
    rows = []
    for name, title in titles.items():
        kaggle = KAGGLE.format(repository=repository, branch=BRANCH, name=name)
        rows.append(f"| {title} | {badge(name, repository)} | [open in Kaggle]({kaggle}) |")
    return "\n".join(
        [
            "# The Kernel Ladder, in the cloud",
            "",
            f"Generated from [{repository}]({GITHUB}/{repository}). Run the first code cell of a lesson: it clones the",
            "course and prints whether the kernels run on a GPU or in the simulator, and why.",
            f"[What each service offers]({GITHUB}/{repository}/blob/main/docs/cloud.md).",
            "",
            f"[![Launch Binder]({BINDER_BADGE})]({BINDER.format(repository=repository)}) has no GPU.",
            "",
            "| lesson | Colab | Kaggle |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def write(out: Path, repository: str, clone: str) -> list[Path]:
    """Writes README.md and notebooks/ into `out`, over those of an earlier run; returns the notebooks."""
    folder, titles, written = out / "notebooks", {}, []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        titles[path.name] = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
        written.append(folder / path.name)
        written[-1].write_text(to_text(for_colab(notebook, path.name, repository, clone)), encoding="utf-8")
    (out / "README.md").write_text(page(titles, repository), encoding="utf-8")
    return written


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers colab", description="Write the lessons for Colab.")
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder, which is made")
    parser.add_argument("--repository", required=True, metavar="OWNER/NAME", help="of the course, on GitHub")
    parser.add_argument("--clone", metavar="URL", help="where lessons clone the course from (default: the repository)")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", options.repository):
        print(f"colab: {options.repository!r} is not OWNER/NAME, such as octocat/kernel-ladder", file=sys.stderr)
        return 2
    clone = options.clone or f"{GITHUB}/{options.repository}"
    written = write(options.out, options.repository, clone)
    print(f"wrote {len(written)} lessons and README.md to {options.out}")
    return 0
