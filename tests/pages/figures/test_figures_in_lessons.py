"""The lessons show the figures with today's data: those of the kernels and of results/."""

import html
import re

import nbformat
import pytest
from running import data_of

from helpers.pages.figures.climb import where_bytes_go
from helpers.pages.figures.loads import load_cost
from helpers.paths import NOTEBOOKS

SHOWN = {
    "01_vector_add": ("helpers.load_cost()", load_cost),
    "08_matmul": ('helpers.load_cost("shared")', lambda: load_cost("shared")),
    "11_hopper": ("helpers.where_bytes_go()", where_bytes_go),
}


@pytest.mark.parametrize("lesson", SHOWN)
def test_a_lessons_figure_has_todays_data(lesson):
    source, made = SHOWN[lesson]
    notebook = nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.source == source]
    shown = cell.outputs[0].data["text/html"]
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1])
    assert data_of(page) == data_of(made().page), f"run the cell {source} of {lesson} again, and commit its output"
    assert re.search(r'<img class="ladder-still" alt="[^"]{40,}', shown)
    assert len(shown) < 200_000
