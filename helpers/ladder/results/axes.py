"""Axes and colours of the plots of results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from kernel_xray.report.canvas import INK, Picture

OURS = ("#3f83cc", "#2f9e5c", "#9a62b3", "#1f9aa8", "#7d8a2e", "#8c6d52")
PEER = {
    "eager": "#d0702f",
    "compile": "#c79a1c",
    "compile_dynamic": "#a8812a",
    "triton": "#c2557a",
    "cublas": "#c79a1c",
    "cudnn": "#c79a1c",
    "flash": "#a8812a",
    "fa4": "#b0413e",
    "quack": "#b0413e",
}
GRID = "#85858540"


def colours(names: Iterable[str]) -> list[str]:
    """A colour for each contender: fixed for peers and the copy, cycling for ours."""
    ours = itertools.cycle(OURS)
    return [INK if n == "copy" else PEER[n] if n in PEER else next(ours) for n in names]


def axes(figure: Picture, title: str, grid: Literal["both", "x", "y"] = "both") -> Axes:
    """Transparent axes that fill a figure, with the title at the left and grid lines for "x", "y" or "both"."""
    ax = figure.add_subplot()
    ax.patch.set_alpha(0)
    ax.set_title(title, color=INK, fontsize=10, loc="left")
    ax.grid(axis=grid, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=INK, which="both")
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    return ax


def log2_axis(ax: Axes, sizes: Sequence[int]) -> None:
    """Ticks at powers of two: all of them, or every second or fourth if all would not fit."""
    ax.set_xscale("log", base=2)
    low, high = (round(math.log2(x)) for x in (min(sizes), max(sizes)))
    step = 1 if high - low <= 8 else 2 if high - low <= 20 else 4
    ax.xaxis.set_major_locator(FixedLocator([2**k for k in range(high % step + low - low % step, high + 1, step)]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"$2^{{{round(math.log2(x))}}}$"))
    ax.xaxis.set_minor_locator(NullLocator())


def legend(ax: Axes, loc: Literal["upper left", "upper right", "lower left", "lower right", "best"]) -> None:
    """A legend without a frame, whose marks are no larger than its text."""
    made = ax.legend(loc=loc, frameon=False, labelcolor=INK, fontsize=9.5)
    for handle in made.legend_handles:
        if isinstance(handle, Line2D):
            handle.set_markersize(min(handle.get_markersize(), 8))
