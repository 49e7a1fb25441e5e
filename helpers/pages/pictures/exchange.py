"""Pictures of how the lanes of a warp combine their values by shuffles, step by step."""

import operator
from collections.abc import Callable, Sequence

from matplotlib.patches import FancyArrowPatch, Rectangle

from helpers.pages.pictures.plot import blank_axes, caption
from kernel_xray.report.canvas import COLOURS, INK, WIDTH, Picture

KINDS = ("xor", "down", "up")
COUNTS = (2, 4, 8, 16)  # of lanes; more would be illegible
_HEIGHT, _STEP = 0.55, 1.5  # of a cell, and from one row of cells to the next, in cells


def exchange_map(
    values: Sequence[float], kind: str = "xor", combine: Callable[[float, float], float] = operator.add
) -> Picture:
    """What each lane holds before and after each step of a reduction or a scan; arrows leave the lane that is read.

    values    one for each lane: 2, 4, 8 or 16 of them
    kind      "xor":  lane i reads from lane i ^ offset; the offset halves each time: all lanes get the result
              "down": from lane i + offset, which halves, too: lane 0 gets it. Only the lanes that matter are drawn
              "up":   from lane i - distance, which doubles: a scan
    combine   (value of the lower lane, value of the higher lane) -> what the lane holds next

    Raises ValueError for another count of values, and for an unknown kind.
    """
    lanes = len(values)
    if lanes not in COUNTS:
        raise ValueError(f"there must be 2, 4, 8 or 16 values, got {lanes}")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    offsets = [1 << step for step in range(lanes.bit_length() - 1)]
    offsets = offsets if kind == "up" else offsets[::-1]
    inch = (WIDTH - 1.6) / lanes
    tall = _STEP * len(offsets) + _HEIGHT + 0.5
    figure = Picture(tall * min(inch, 0.62) + 0.4, "")
    ax = blank_axes(figure, (-2.0, lanes), (tall - 0.5, -0.5))
    held, alive = list(values), set(range(lanes))
    for step, offset in enumerate([0, *offsets]):
        top, above = step * _STEP, (step - 1) * _STEP + _HEIGHT
        sources = {lane: _source(kind, lane, offset, lanes) for lane in range(lanes)} if offset else {}
        alive = {lane for lane in alive if kind != "down" or not offset or lane < offset}
        before = list(held)
        for lane, source in sources.items():
            if source is None or lane not in alive:
                continue
            held[lane] = combine(*(before[i] for i in sorted((lane, source))))
            ends = (source + 0.5, above), (lane + 0.5, top)
            ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, color=INK, shrinkA=1, shrinkB=1))
        for lane in range(lanes):
            changed = sources.get(lane) is not None and lane in alive
            colour = COLOURS[0] if not offset or changed else COLOURS[7]
            if lane in alive:
                ax.add_patch(Rectangle((lane + 0.06, top), 0.88, _HEIGHT, facecolor=colour, edgecolor="white"))
                ax.text(lane + 0.5, top + _HEIGHT / 2, f"{held[lane]:g}", color="white", ha="center", va="center")
            if not offset:
                ax.text(lane + 0.5, -0.08, str(lane), color=INK, fontsize=9, ha="center", va="bottom")
        label = f"{'distance' if kind == 'up' else 'offset'} {offset}" if offset else "value"
        ax.text(-0.15, top + _HEIGHT / 2, label, color=INK, fontsize=10, ha="right", va="center")
    ax.text(-0.15, -0.08, "lane", color=INK, fontsize=9, ha="right", va="bottom")
    figure.description = f"exchange_map ({kind}): {lanes} lanes, {len(offsets)} steps; lane 0 ends with {held[0]:g}"
    caption(ax, f"{kind}: an arrow is a value that a lane reads from another; it combines it with its own")
    return figure


def _source(kind: str, lane: int, offset: int, lanes: int) -> int | None:
    """The lane that `lane` reads from; None if it gets its own value back."""
    source = {"xor": lane ^ offset, "down": lane + offset, "up": lane - offset}[kind]
    return source if 0 <= source < lanes else None
