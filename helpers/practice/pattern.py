"""A picture of a wrong result: which of its elements are wrong. Their pattern often shows the mistake."""

import html

import torch
from torch.nn.functional import pad

from helpers.practice.case_runner import Rejected

LANES = 32  # elements of a vector in a row, as the lanes of a warp
MOST = 64  # cells in a row or a column
RIGHT, WRONG = "#8a8f9855", "#d9822b"  # visible on light and dark
_SIZE = 8  # pixels of a cell


def picture(error: Rejected) -> str:
    """The elements of the output that `error` is about, as SVG with a caption; "" if it is not about values."""
    if error.right is None:
        return ""
    wrong, shape = ~error.right, error.right.shape
    as_rows = wrong.reshape(-1, shape[-1]) if len(shape) > 1 else _in_rows(wrong.reshape(-1))
    there = as_rows.new_ones(as_rows.shape)
    there.view(-1)[wrong.numel() :] = False
    marked, cells = _cells(as_rows), _cells(there)
    rows, columns = marked.shape
    name, of = html.escape(error.output or "the result"), f"{int(wrong.sum()):,} of {wrong.numel():,} elements wrong"
    per_cell = -(-as_rows.shape[0] // rows) * -(-as_rows.shape[1] // columns)
    caption = f"{name}: {of}, in orange; " + (
        f"{as_rows.shape[1]:,} elements a row" if len(shape) < 2 else f"{' x '.join(map(str, shape))}"
    )
    caption += f"; a cell is {per_cell:,} elements, orange if one of them is wrong" if per_cell > 1 else ""
    paths = "".join(
        f'<path fill="{colour}" d="{_path(where)}"/>' for colour, where in ((RIGHT, cells & ~marked), (WRONG, marked))
    )
    return (
        f'<figure style="margin: 6px 0"><svg role="img" aria-label="{caption}" viewBox="0 0 {columns} {rows}" '
        f'width="{_SIZE * columns}" height="{_SIZE * rows}" style="max-width: 100%">{paths}</svg>'
        f'<figcaption style="font-size: 90%">{caption}</figcaption></figure>'
    )


def _in_rows(vector: torch.Tensor) -> torch.Tensor:
    """A vector in rows of LANES, or of a multiple of it if there would be too many; False beyond its end."""
    width = LANES * max(1, -(-len(vector) // (LANES * MOST)))
    return pad(vector, (0, -len(vector) % width)).view(-1, width)


def _cells(elements: torch.Tensor) -> torch.Tensor:
    """At most MOST x MOST cells, each of neighbouring elements: whether one of them is True."""
    tall, wide = (-(-size // MOST) for size in elements.shape)
    rows, columns = elements.shape
    whole = pad(elements, (0, -columns % wide, 0, -rows % tall))
    return whole.view(-1, tall, whole.shape[1] // wide, wide).any(3).any(1)


def _path(cells: torch.Tensor) -> str:
    """An SVG path over the cells that are True, a little apart; neighbours in a row are not joined."""
    return "".join(f"M{x + 0.05:g} {y + 0.05:g}h.9v.9h-.9z" for y, x in cells.nonzero().tolist())
