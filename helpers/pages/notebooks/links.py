"""Links between lessons: in a lesson's prose, each "lesson 06" leads to that lesson."""

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from helpers.paths import NOTEBOOKS

LESSONS = re.compile(r"\b[Ll]essons?\s\d\d(?:(?:, and | and |, | to )\d\d)*\b")  # "lesson 06", "lessons 04 and 05"
LESSON = re.compile(r"(?:[Ll]essons?\s)?(\d\d)")
CLOSED = re.compile(  # headings, blocks and spans of code, links, tags of HTML
    r"^\#.*?$|^```.*?^```|`[^`]*`|\[[^\]]*\]\([^)]*\)|<[^>]+>", re.MULTILINE | re.DOTALL
)


def number_of(notebook: NotebookNode) -> str:
    """The two digits with which a lesson's title begins; empty if the notebook is not a lesson."""
    title = re.match(r"# (\d\d) \w", notebook.cells[0].source) if notebook.cells else None
    return title.group(1) if title else ""


def linked(text: str, own: str) -> str:
    """Markdown of lesson `own` in which each other lesson that it names is a link."""
    files = {path.name[:2]: path.name for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb") if path.name[:2] != own}
    closed = [match.span() for match in CLOSED.finditer(text)]
    for start, end, number in reversed([*_lessons_named(text)]):
        if number in files and not any(first <= start < last for first, last in closed):
            text = f"{text[:start]}[{text[start:end]}]({files[number]}){text[end:]}"
    return text


def _lessons_named(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and number of each lesson that a text names."""
    for group in LESSONS.finditer(text):
        for lesson in LESSON.finditer(text, *group.span()):
            yield *lesson.span(), lesson.group(1)
