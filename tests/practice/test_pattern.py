"""The picture of a wrong result: its cells are those of the wrong elements."""

import re

import pytest
import torch

from helpers.practice import pattern
from helpers.practice.case_runner import Rejected


def drawn(wrong, shape):
    """The picture of a result of which the elements `wrong` are wrong, and the cells of each colour as (x, y)."""
    error = Rejected("wrong")
    error.right, error.output = torch.ones(shape, dtype=torch.bool), "out"
    error.right.view(-1)[wrong] = False
    svg = pattern.picture(error)
    paths = re.findall(r'd="(.*?)"', svg)
    return svg, *([(int(x), int(y)) for x, y in re.findall(r"M(\d+)\.05 (\d+)\.05", path)] for path in paths)


@pytest.mark.parametrize(
    ("shape", "wrong", "cells", "count"),
    [
        ((70,), [0, 33, 69], [(0, 0), (1, 1), (5, 2)], 70),  # a row is the lanes of a warp
        ((3, 5), [7], [(2, 1)], 15),
        ((2, 3, 4), [12, 23], [(0, 3), (3, 5)], 24),
        ((), [0], [(0, 0)], 1),
        ((128, 256), [0, 256 * 127 + 255], [(0, 0), (63, 63)], 64 * 64),
    ],
)
def test_each_element_has_a_cell_and_wrong_ones_another_colour(shape, wrong, cells, count):
    svg, right, marked = drawn(wrong, shape)
    assert marked == cells
    assert len(right) == count - len(cells) and not set(right) & set(marked)
    assert f"out: {len(wrong)} of" in svg


def test_a_long_vector_fits():
    svg, right, marked = drawn([0, 40_002], (40_003,))
    assert marked[0] == (0, 0) and len(marked) == 2
    assert max(x for x, _ in right) < pattern.MOST and max(y for _, y in (*right, *marked)) < pattern.MOST
    assert "orange if one of them is wrong" in svg


def test_an_error_that_is_not_about_values_has_none():
    assert pattern.picture(Rejected("it wrote outside out")) == ""
