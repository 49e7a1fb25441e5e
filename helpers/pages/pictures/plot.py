"""Pictures of a GPU's work: which thread handles which element, how a grid is divided into blocks.

Each function returns a matplotlib Figure. Nothing here runs or times a kernel: the pictures show index arithmetic, or
indices that a kernel recorded.
"""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kernel_xray.report.canvas import COLOURS, INK, WIDTH, Picture

ALARM = "#d03b3b"
PITCH = 1.65  # from one row of cells to the next, in cells
FORMS = ("one each", "grid stride", "chunk")


def thread_map(elements: int, threads: int, blocks: int | None = None, form: str = "one each") -> Picture:
    """Which thread of which block handles each of `elements` elements, by the index arithmetic of a kernel.

    threads   per block
    blocks    in the grid; by default just enough for one thread per element
    form      "one each":    thread i takes element i; threads past the end are hatched
              "grid stride": thread i takes i, i + s, i + 2s, ... with s = blocks * threads; one row per round
              "chunk":       thread i takes a run of neighbouring elements

    Elements that no thread takes are outlined in red. Raises ValueError for sizes below 1, for an unknown form and for
    more than 512 cells, which would be illegible.
    """
    for name, value in (("elements", elements), ("threads", threads), ("blocks", blocks)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}")
    blocks = -(-elements // threads) if blocks is None else blocks
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}; got {form!r}")
    total = blocks * threads
    chunk = -(-elements // total)
    owners: dict[str, list[int | None]] = {
        "one each": [i if i < total else None for i in range(max(elements, total))],
        "grid stride": [i % total for i in range(elements)],
        "chunk": [i // chunk for i in range(elements)],
    }
    cells = [None if owner is None else divmod(owner, threads) for owner in owners[form]]
    return _draw_map(cells, elements, total if form == "grid stride" else None, form)


def recorded_map(block: Sequence[int], thread: Sequence[int]) -> Picture:
    """Which thread handled each element, as a kernel recorded it: block and thread index per element, -1 for none.

    Takes lists or 1-D integer tensors of one length. Raises ValueError if the lengths differ.
    """
    block, thread = [int(x) for x in block], [int(x) for x in thread]
    if len(block) != len(thread) or not block:
        raise ValueError(f"block and thread must have one length, 1 or more; got {len(block)} and {len(thread)}")
    cells = [None if b < 0 or t < 0 else (b, t) for b, t in zip(block, thread, strict=True)]
    return _draw_map(cells, len(cells), None, "as recorded")


def grid_and_blocks(grid: tuple[int, ...], block: tuple[int, ...]) -> Picture:
    """A grid of blocks, each with its threads: grid = (x, y) blocks of block = (x, y) threads; y may be left out.

    x runs to the right and y downwards, as the indices of a matrix do when x is its column. Raises ValueError for more
    than two dimensions, sizes below 1, and more than 2,048 threads.
    """
    for name, size in (("grid", grid), ("block", block)):
        if not 1 <= len(size) <= 2 or min(size) < 1:
            raise ValueError(f"{name} must be one or two sizes of 1 or more, got {size}")
    (gx, gy), (bx, by) = (*grid, 1)[:2], (*block, 1)[:2]
    if gx * gy * bx * by > 2048:
        raise ValueError(f"{gx * gy * bx * by:,} threads are too many to draw; 2,048 at most")
    two_d = len(grid) == 2 or len(block) == 2
    gap, head = 0.08 * max(bx, by, 4), 0.16 * max(bx, by, 4)  # between blocks; above each, for its label
    wide, tall = gx * (bx + gap) - gap, gy * (by + head + gap)
    inch = min(WIDTH / wide, 6.0 / tall, 0.75)
    figure = Picture(
        tall * inch + 0.35, f"grid_and_blocks: {gx} x {gy} blocks of {bx} x {by} threads, {gx * gy * bx * by} in all"
    )
    ax = blank_axes(figure, (0, wide), (tall, 0))
    label_threads = inch * 72 >= (26 if two_d else 15)  # the side of a thread's square, in points
    for k in range(gx * gy):
        i, j = k % gx, k // gx
        x0, y0 = i * (bx + gap), j * (by + head + gap) + head
        colour = COLOURS[k % len(COLOURS)]
        title = f"block ({i}, {j})" if two_d else f"block {i}"
        ax.text(x0, y0 - 0.2 * head, title, color=INK, fontsize=_fit(title, bx * inch, 10), ha="left", va="bottom")
        squares = [Rectangle((x0 + t % bx, y0 + t // bx), 1, 1) for t in range(bx * by)]
        ax.add_collection(PatchCollection(squares, facecolor=colour, edgecolor="white", linewidth=0.7))
        for t in range(bx * by) if label_threads else ():
            tx, ty = t % bx, t // bx
            text = f"{tx},{ty}" if two_d else f"{tx}"
            ax.text(x0 + tx + 0.5, y0 + ty + 0.5, text, color="white", fontsize=8, ha="center", va="center")
    what = "x,y inside a square: threadIdx" if two_d else "number inside a square: threadIdx.x"
    caption(ax, f"gridDim = ({gx}, {gy}), blockDim = ({bx}, {by})" + (f"; {what}" if label_threads else ""))
    return figure


def _draw_map(cells: list[tuple[int, int] | None], elements: int, width: int | None, form: str) -> Picture:
    """Cells in rows: the element's index above, its thread inside, coloured by block; a label where a block begins."""
    if len(cells) > 512:
        raise ValueError(f"{len(cells)} cells are too many to draw; 512 at most")
    columns = min(width or 32, 32, len(cells))
    rows_per_round = math.ceil((width or columns) / columns)
    places = []  # (column, row) of each cell; a round of the grid-stride loop starts a new row
    for i in range(len(cells)):
        turn, place = divmod(i, width) if width else (0, i)
        places.append((place % columns, turn * rows_per_round + place // columns))
    rows = places[-1][1] + 1
    idle = sum(1 for owner in cells[elements:] if owner)
    unwritten = sum(1 for owner in cells[:elements] if not owner)
    blocks = len({owner[0] for owner in cells if owner})
    figure = Picture(
        (1.05 * rows + 0.1) * max(0.6, min(1.0, 0.72 * 16 / columns)) + 0.6,
        f"thread_map ({form}): {elements} elements, {blocks} blocks; {idle} threads past the end, "
        f"{unwritten} elements without a thread",
    )
    ax = blank_axes(figure, (-1.6 if width else -0.1, columns + 0.1), (PITCH * rows, -0.55))
    size = 10 if columns <= 16 else 8
    for i, (owner, (x, row)) in enumerate(zip(cells, places, strict=True)):
        y = PITCH * row
        past = i >= elements
        style: dict[str, Any] = {"facecolor": "none", "edgecolor": ALARM, "linestyle": "--"}
        if owner:
            colour = COLOURS[owner[0] % len(COLOURS)]
            style = {"facecolor": colour, "edgecolor": "white"}
            if past:
                style = {"facecolor": "none", "edgecolor": colour, "hatch": "////"}
        ax.add_patch(Rectangle((x + 0.03, y + 0.35), 0.94, 0.75, linewidth=1.2, **style))
        ax.text(x + 0.5, y + 0.3, str(i), color=INK, fontsize=size - 1, ha="center", va="bottom")
        if not past:
            text, ink = (f"t{owner[1]}", "white") if owner else ("?", ALARM)
            ax.text(x + 0.5, y + 0.72, text, color=ink, fontsize=size, ha="center", va="center")
        before = cells[i - 1] if x else None
        if owner and (not before or before[0] != owner[0]):
            ax.text(x + 0.05, y - 0.03, f"block {owner[0]}", color=INK, fontsize=size, va="bottom", weight="bold")
        if width and x == 0 and row % rows_per_round == 0:
            label = f"round {row // rows_per_round}"
            ax.text(-0.15, y + 0.72, label, color=INK, fontsize=size, ha="right", va="center")
    notes = [f"{elements} elements", "number: index i, t: threadIdx.x"]
    if idle:
        notes.append(f"hatched: {idle} threads past the end")
    if unwritten:
        notes.append(f"red: {unwritten} elements that no thread takes")
    caption(ax, "; ".join(notes))
    return figure


def blank_axes(figure: Figure, xlim: tuple[float, float], ylim: tuple[float, float]) -> Axes:
    ax = figure.add_subplot()
    ax.set(xlim=xlim, ylim=ylim)
    ax.axis("off")
    return ax


def caption(ax: Axes, text: str) -> None:
    ax.set_title(text, color=INK, fontsize=10, loc="left")


def _fit(text: str, inches: float, largest: float) -> float:
    """A font size at which `text` is at most `inches` wide (a character is about 0.6 times as wide as high)."""
    return max(5.0, min(largest, inches * 72 / (0.6 * len(text))))
