"""Every lesson keeps to its limits and its outline, and shows kernels from their files."""

import copy
import functools
import re

import nbformat
import pytest

from helpers.pages.pictures.show import functions_in
from helpers.paths import ROOT
from helpers.practice import registry

NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
WORDS, CODE_LINES, CELL_LINES = 1300, 190, 32  # lines of at most 100 columns
HEADINGS = ("The problem", "Predict", "Exercises", "Summary", "Next")  # these, in this order; others may come between


@functools.cache
def kernels_in_files() -> set[str]:
    """Names of the __global__ functions under kernels/."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "kernels").rglob("*.cu")]
    return {name for text in texts for name in kernel_names(text)}


def kernel_names(text: str) -> set[str]:
    lines, found = text.split("\n"), functions_in(text).items()
    return {name for name, (first, last) in found if "__global__" in "\n".join(lines[first - 1 : last])}


def points(text: str) -> int:
    return len(re.findall(r"^- ", text, flags=re.MULTILINE))


def is_pencil(cell) -> bool:
    """The cell with questions to answer on paper, each with a folded answer."""
    return cell.source.startswith("### With a pencil\n")


def problems(notebook, in_files: set[str]) -> list[str]:
    """What is wrong with a lesson, in words; empty if nothing is."""
    # An exercise's two cells are generated from kernels/solutions/, with tests of their own.
    exercises = [i for i, cell in enumerate(notebook.cells) if cell.source.startswith("%%exercise ")]
    cells = [c for i, c in enumerate(notebook.cells) if not {i, i + 1} & set(exercises) and not is_pencil(c)]
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    words = sum(len(text.split()) for text in prose)
    lines = [[line for line in text.split("\n") if line.strip()] for text in code]
    total = sum(map(len, lines))
    opening = prose[0] if prose else ""
    abilities = opening.partition("**You will be able to**")[2]
    summary = re.search(r"^## Summary\n(.*?)(?=^## |\Z)", "\n".join(prose), flags=re.MULTILINE | re.DOTALL)
    rules = [  # what is wrong, and its words
        (words > WORDS, f"{words:,} words; {WORDS:,} at most"),
        (total > CODE_LINES, f"{total} lines of code; {CODE_LINES} at most"),
        (not re.match(r"# \d\d \w", opening), "the first cell does not begin with '# NN Title'"),
        (sum(text.startswith("# ") for text in prose) != 1, "there must be one heading of level 1"),
        (points(abilities) != 3, "the first cell lacks three points under '**You will be able to**'"),
        (summary and points(summary[1]) != 3, "the summary must have three points"),
        (not any("show_kernel(" in text for text in code), "no kernel is shown from its file"),
    ]
    found = [message for wrong, message in rules if wrong]
    long = [cell for cell in lines if len(cell) > CELL_LINES]
    found += [f"a cell of {len(cell)} lines ({cell[0]}); {CELL_LINES} at most" for cell in long]
    found += [f"the first cell lacks '{label}'" for label in ("**You need:**", "**Time:**") if label not in opening]
    headings = re.findall(r"^## (.*)", "\n".join(prose), flags=re.MULTILINE)
    at = 0
    for wanted in HEADINGS:
        place = next((i for i in range(at, len(headings)) if headings[i].startswith(wanted)), None)
        if place is None:
            found.append(f"no heading '## {wanted}...' at its place in the outline")
        else:
            at = place + 1
    pasted = {name for text in code + prose for name in kernel_names(text)} & in_files
    found += [f"kernel {name} is in a file: show it with show_kernel" for name in sorted(pasted)]
    return found


def test_there_are_lessons():
    assert [path.stem for path in NOTEBOOKS][:2] == ["00_start_here", "01_vector_add"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_keeps_to_the_style(path):
    notebook = nbformat.read(path, as_version=4)
    assert problems(notebook, kernels_in_files()) == []
    assert notebook.cells[0].source.startswith(f"# {path.stem[:2]} ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_has_pencil_questions_with_folded_answers(path):
    (cell,) = filter(is_pencil, nbformat.read(path, as_version=4).cells)
    questions = re.findall(
        r"^\*\*\d\.\*\* .*?\?.*?\n\n<details><summary>Answer</summary>\n\n(.+?)\n\n</details>",
        cell.source,
        flags=re.MULTILINE | re.DOTALL,
    )
    assert cell.cell_type == "markdown"
    assert len(questions) == cell.source.count("<details>") == cell.source.count("</details>") >= 2
    assert len(cell.source.split()) <= 250


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_opening_says_how_long_the_exercises_take(path):
    opening = " ".join(nbformat.read(path, as_version=4).cells[0].source.split())
    minutes = sum(registry.read(e.name).minutes for e in registry.exercises() if e.lesson == path.stem[:2])
    assert re.search(r"\*\*Time:\*\* [^*]*\b(\d+) for the exercises?\b", opening)[1] == str(minutes)


@pytest.fixture(scope="module")
def good():
    return nbformat.read(NOTEBOOKS[1], as_version=4)


def code(notebook, source):
    notebook.cells.append(nbformat.v4.new_code_cell(source))


def prose(notebook, source):
    notebook.cells.append(nbformat.v4.new_markdown_cell(source))


def replace(notebook, old, new):
    assert any(old in cell.source for cell in notebook.cells)
    for cell in notebook.cells:
        cell.source = cell.source.replace(old, new)


KERNEL = "__global__ void vector_add_kernel(float* a) { a[0] = 1; }"


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda n: prose(n, "word " * 1300), "words"),
        (lambda n: [code(n, "x = 1\n" * 32) for _ in range(6)], "lines of code"),
        (lambda n: code(n, "x = 1\n" * 33), "a cell of 33 lines"),
        (lambda n: prose(n, "# Another title"), "one heading of level 1"),
        (lambda n: replace(n, "# 01 Vector", "# Vector"), "NN Title"),
        (lambda n: replace(n, "**You need:**", "You need"), "You need"),
        (lambda n: replace(n, "**Time:**", "Time"), "Time"),
        (lambda n: replace(n, "**You will be able to**\n", "**You will be able to**\n- fly\n"), "three points under"),
        (lambda n: replace(n, "## Predict", "## Guess"), "## Predict"),
        (lambda n: replace(n, "## Next", "## Predict again"), "## Next"),
        (lambda n: replace(n, "## Summary\n", "## Summary\n- more\n"), "the summary"),
        (lambda n: code(n, f"source = '''\n{KERNEL}\n'''"), "kernel vector_add_kernel is in a file"),
        (lambda n: prose(n, f"```cpp\n{KERNEL}\n```"), "kernel vector_add_kernel is in a file"),
        (lambda n: replace(n, "show_kernel(", "print("), "no kernel is shown"),
    ],
)
def test_each_rule_detects_its_violation(good, spoil, complaint):
    notebook = copy.deepcopy(good)
    spoil(notebook)
    assert any(complaint in problem for problem in problems(notebook, kernels_in_files()))
