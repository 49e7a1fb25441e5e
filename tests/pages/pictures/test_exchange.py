"""exchange_map: what the lanes hold after each step of a reduction or a scan."""

import itertools

import pytest

import helpers
from helpers.pages.pictures.exchange import exchange_map

VALUES = [3, -1, 4, 1, -5, 9, -2, 6]


def rows(figure):
    """The numbers in the cells, a row for each step."""
    texts = [text for text in figure.axes[0].texts if text.get_color() == "white"]
    heights = sorted({text.get_position()[1] for text in texts})
    return [[float(text.get_text()) for text in texts if text.get_position()[1] == height] for height in heights]


def test_all_lanes_get_the_sum_of_an_xor():
    assert rows(exchange_map(VALUES)) == [VALUES, [-2, 8, 2, 7] * 2, [0, 15] * 4, [15] * 8]


def test_lane_0_gets_the_sum_of_a_down():
    assert rows(exchange_map(VALUES, "down")) == [VALUES, [-2, 8, 2, 7], [0, 15], [15]]


@pytest.mark.parametrize("combine", [max, min, lambda before, own: before + own])
def test_an_up_is_a_scan(combine):
    found = rows(exchange_map(VALUES, "up", combine))
    assert len(found) == 4 and found[-1] == list(itertools.accumulate(VALUES, combine))


def test_the_lower_lane_comes_first():
    assert rows(exchange_map([5, 2], "xor", lambda low, high: low - high))[-1] == [3, 3]


def test_an_arrow_for_each_value_that_is_read():
    assert [len(exchange_map(VALUES, kind).axes[0].patches) for kind in ("xor", "down", "up")] == [
        4 * 8 + 3 * 8,  # cells and arrows
        8 + 4 + 2 + 1 + 4 + 2 + 1,
        4 * 8 + 7 + 6 + 4,
    ]


def test_it_is_a_picture_that_describes_itself():
    figure = helpers.exchange_map(VALUES)
    assert figure._repr_png_()[0].startswith(b"\x89PNG")
    assert repr(figure) == "exchange_map (xor): 8 lanes, 3 steps; lane 0 ends with 15"


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [([1, 2, 3], "xor", "got 3"), ([], "up", "got 0"), ([1] * 32, "up", "got 32"), ([1, 2], "left", "got 'left'")],
)
def test_what_cannot_be_drawn_is_refused(values, kind, message):
    with pytest.raises(ValueError, match=message):
        exchange_map(values, kind)
