"""A number that a lesson quotes is one that a cell of it shows: in the committed outputs, and in a run without a GPU.

The run itself is nbval's: notebooks/conftest.py compares its outputs with the prose after the last cell.
"""

import nbformat
import pytest

from helpers.pages.notebooks import quotes
from helpers.paths import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def read(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return quotes.prose_of(notebook), [quotes.texts(cell.outputs) for cell in code]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_quoted_number_is_shown_or_listed_with_its_source(path):
    assert set(quotes.unshown(*read(path))) == set(quotes.elsewhere(path.stem))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_lesson_shows_that_something_is_not_measured(path):
    """Its prose explains a number then that no reader sees: results/ lacks a record that the lesson asks for."""
    assert [shown for shown in read(path)[1] if "not measured yet" in shown or "nothing is recorded" in shown] == []


def test_the_list_names_lessons_and_sources():
    for lesson in quotes.toml.loads(quotes.LIST.read_text())["recorded"]:
        assert lesson in {path.stem for path in NOTEBOOKS}
        assert all(len(source.split()) >= 3 for source in quotes.elsewhere(lesson).values())


TABLE = """measured on NVIDIA H200
  contender      median  rate        of copy
  vector_add   0.184 ms  4,384 GB/s   103.4%
  simple       0.368 ms  2,192 GB/s    51.7%"""


@pytest.mark.parametrize(
    "prose",
    [
        "It takes 184 us, 0.18 ms.",
        "It reaches 103% of a copy, the other 52%.",
        "The other reaches 2.2 TB/s.",
        "It is 2.0 times as fast, 2.00x the other, a factor of 2.",
        "`7 TB/s`, 4096 x 4096, 2^26 elements, lesson 06, 17 bytes",  # no quote
    ],
)
def test_numbers_that_the_cell_shows_are_found(prose):
    assert quotes.unshown([prose], [TABLE]) == []


@pytest.mark.parametrize(
    ("prose", "lost"),
    [
        ("It takes 185 us.", ["185 us"]),
        ("It reaches 104% of a copy.", ["104%"]),
        ("It is 1.9 to 2.1 times as fast.", ["1.9 times as", "2.1 times as"]),
        ("a factor\nof 3", ["3x"]),
        ("It reaches 8.4 TFLOP/s, once 8.4 TFLOP/s more.", ["8.4 TFLOP/s"]),
        ("It takes 184 ms, or 184 s.", ["184 ms", "184 s"]),
        ("It loses 50%.", ["50%"]),  # the ratio of two times is a factor, not a share
    ],
)
def test_numbers_that_no_cell_shows_are_found(prose, lost):
    assert quotes.unshown([prose], [TABLE]) == lost


def test_a_run_here_may_differ_by_little():
    assert quotes.unshown(["It takes 190 us."], [TABLE], slack=0.06) == []
    assert quotes.unshown(["It takes 210 us."], [TABLE], slack=0.06) == ["210 us"]


def test_bare_numbers_take_the_units_that_the_output_names():
    table = "rung   TFLOP/s  of cuBLAS\nnaive      0.5      1.0%"
    assert quotes.unshown(["0.5 TFLOP/s"], [table]) == []
    assert quotes.unshown(["0.5 TB/s"], [table]) == ["0.5 TB/s"]
    assert quotes.unshown(["6.4 us"], ["microseconds per call\nC++ operator   6.4"]) == []


LISTING = """kernels/a.cu, lines 51-53
51  // Partial sums are 0.3% of the traffic, 4 TB/s.
52  constexpr int kRows = 7, kRest = kThreads % kRows;
53"""
CHANGE = """- kernels/a.cu, lines 7-8
+ kernels/b.cu, lines 52-53
- 7   sum += i % 9;  // 0.3% more, or 4 TB/s
+52   sum += i % 8;
 53 }"""


@pytest.mark.parametrize("listing", [LISTING, CHANGE])
def test_of_a_listing_only_the_comments_count(listing):
    text = quotes.texts([nbformat.v4.new_output("display_data", {"text/plain": listing})])
    assert quotes.unshown(["0.3%, 4 TB/s, 7%, 8%, 9%, 52%, 53%"], [text]) == ["7%", "8%", "9%", "52%", "53%"]


def test_a_table_whose_rows_begin_with_a_number_counts():
    text = quotes.texts([nbformat.v4.new_output("stream", text="width   %\n   52  51\n   53  50")])
    assert quotes.unshown(["50%, 51%, 52%, 53%"], [text]) == []


def test_exercises_and_pencil_questions_quote_nothing():
    md, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [md("It takes 5 us."), md("About 7 s."), code("%%exercise roll"), md("### With a pencil\n\n9% of it")]
    assert quotes.prose_of(nbformat.v4.new_notebook(cells=cells)) == ["It takes 5 us."]
