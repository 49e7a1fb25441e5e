"""Lessons as the book shows them: committed notebooks with links to kernels and alternative texts.

Nothing is executed: code and outputs are those of the committed notebook.
"""

import base64
import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

FILE = re.compile(r"\bkernels/([\w/]+\.\w+)")
# What an exercise that is not solved asks for where its cell can run, and what it asks of a reader.
AGAIN = re.compile(r" and run it again; hint\(&quot;\w+&quot;\) shows a hint")
IN_A_COPY = " in your own copy of the lesson; hints and a solution are folded below"
# The title of a source that show_kernel or a folded solution printed.
SHOWN = re.compile(r'<span class="head">kernels/([\w/]+\.\w+), lines (\d+)-(\d+)</span>')


@dataclass(frozen=True)
class Lesson:
    """A row of the lesson table in README.md."""

    number: str  # two digits
    name: str
    concept: str

    @property
    def document(self) -> str:
        """Its page, without an ending."""
        return f"notebooks/{self.number}_{self.name}"


def lessons_of(readme: str) -> list[Lesson]:
    """The lessons that the table in README.md lists."""
    return [
        Lesson(*found)
        for found in re.findall(r"^\| (\d\d) \| \[(\w+)\]\(notebooks/\w+\.ipynb\) \| (.+?) \|$", readme, re.MULTILINE)
    ]


def kernels_used(notebook: NotebookNode, files: Iterable[str]) -> list[str]:
    """The `files`, paths below kernels/, that the lesson names or shows, in the order of their first appearance."""
    known = set(files)
    return list(dict.fromkeys(name for text in _texts(notebook) for name in FILE.findall(text) if name in known))


def adapted(notebook: NotebookNode, files: Iterable[str]) -> NotebookNode:
    """A copy for the book. `files` are the paths below kernels/ that have a page."""
    known = set(files)
    lesson = copy.deepcopy(notebook)
    for cell in lesson.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                cell.metadata.setdefault("mystnb", {})["image"] = {"alt": alternative(data["text/plain"])}
            if "text/html" in data:
                data["text/html"] = linked(AGAIN.sub(IN_A_COPY, data["text/html"]), known)
    used = kernels_used(notebook, known)
    if used:
        items = ", ".join(f"[kernels/{name}](../kernels/{name}.md)" for name in used)
        lesson.cells.append(new_markdown_cell(f"**Kernel files of this lesson:** {items}", id="kernel-files"))
    return lesson


def alternative(text: str) -> str:
    """A picture's alternative text: what it prints where pictures cannot be shown, on one line."""
    return " ".join(text.split())


def picture(notebook: NotebookNode, words: str) -> tuple[bytes, str]:
    """The first picture of a lesson whose alternative text has these words, with that text. Raises ValueError."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data and words in data["text/plain"]:
                return base64.b64decode(data["image/png"]), alternative(data["text/plain"])
    raise ValueError(f"no picture of this lesson is about {words!r}")


def linked(page: str, known: set[str]) -> str:
    """HTML output in which the title of a shown source leads to these lines on the file's page."""

    def link(shown: re.Match) -> str:
        name, first, last = shown.groups()
        if name not in known:
            return shown.group()
        return (
            f'<span class="head"><a href="../kernels/{name}.html#L-{first}">kernels/{name}, lines {first}-{last}</a>'
            "</span>"
        )

    return SHOWN.sub(link, page)


def _texts(notebook: NotebookNode) -> Iterable[str]:
    """The source of each cell, and what its outputs say."""
    for cell in notebook.cells:
        yield cell.source
        for output in cell.get("outputs", ()):
            yield output.get("text", "") or output.get("data", {}).get("text/html", "")
