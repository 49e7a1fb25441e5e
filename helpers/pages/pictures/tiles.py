"""Pictures of a block at its tiles: which thread copies and computes which element, and which stage is filled when.

They draw what a kernel was seen to do (`xrays.at_work` reads it from a film); nothing here knows a kernel's sizes.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from kernel_xray.report.canvas import COLOURS, INK, WIDTH, Picture

_WARP = 32
_CHOSEN = "#111111"  # the elements of one thread: dark among the warps' colours
_COLUMNS = 122  # of the caption: what fits the picture's width
_THIN, _THICK, _GAP = 0.8, 4.5, 0.5  # inches of a tile's side along k, and along m or n; between tiles


def block_picture(title: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, thread: int) -> Picture:
    """The tile of c that a block computes, beside the tiles of a and b that it copies, coloured by warp.

    a, b, c   for each element the number of the thread that copies it or computes it, -1 for none
    thread    its elements are dark, and the text names them
    """
    lines = [
        _doing(a, b, c, [thread], f"thread {thread}"),
        _doing(a, b, c, _warp_of(thread), f"warp {thread // _WARP}"),
    ]
    caption = "\n".join(textwrap.fill(line, _COLUMNS, subsequent_indent="    ") for line in lines)
    bottom = 0.4 + 0.15 * (caption.count("\n") + 1)
    figure = Picture(_THIN + _THICK + _GAP + 0.6 + bottom, f"{title}: {'; '.join(lines)}")
    figure.set_layout_engine("none")
    left = (WIDTH - _THIN - _THICK - _GAP) / 2
    high, wide = _THICK * len(c) / max(c.shape), _THICK * c.shape[1] / max(c.shape)
    places = {  # inches: left, bottom, width, height
        "a": (left, bottom, _THIN, high),
        "b": (left + _THIN + _GAP, bottom + high + _GAP, wide, _THIN),
        "c": (left + _THIN + _GAP, bottom, wide, high),
    }
    for name, owners in (("a", a), ("b", b), ("c", c)):
        x, y, width, height = places[name]
        ax = figure.add_axes((x / WIDTH, y / figure.get_figheight(), width / WIDTH, height / figure.get_figheight()))
        _tile(ax, owners, thread)
        ax.set_title(f"{name}: {owners.shape[0]} x {owners.shape[1]}", color=INK, fontsize=8, loc="left", pad=3)
    figure.text(
        0.02,
        0.985,
        f"{title}: who copies a and b, who computes c. Colours: warps; dark: thread {thread}",
        color=INK,
        fontsize=10,
        va="top",
    )
    figure.text(0.02, 0.015, caption, color=INK, fontsize=8.5, va="bottom")
    return figure


def stages_picture(
    title: str, intervals: Sequence[tuple[Mapping[int, int], Mapping[int, int]]], stages: int
) -> Picture:
    """Which stage of shared memory is filled and which is multiplied between two barriers; time runs to the right.

    intervals   for each: stage -> the step whose copies are started into it; stage -> the step that is multiplied
    """
    both = [(set(filled), set(read)) for filled, read in intervals]
    seen = "; ".join(
        f"{i}: copies {_steps(filled)}, multiplies {_steps(read)}" for i, (filled, read) in enumerate(intervals)
    )
    figure = Picture(0.5 * stages + 0.95, f"{title}, between barriers {seen}")
    ax = figure.add_subplot()
    ax.set(xlim=(-0.9, len(intervals)), ylim=(stages, -0.25))
    ax.axis("off")
    for x, (filled, read) in enumerate(intervals):
        for stage in range(stages):
            halves = [(f"copy {filled[stage]}", COLOURS[0])] if stage in both[x][0] else []
            halves += [(f"x {read[stage]}", COLOURS[1])] if stage in both[x][1] else []
            for i, (text, colour) in enumerate(halves):
                width = 0.94 / len(halves)
                place = x + 0.03 + i * width
                ax.add_patch(Rectangle((place, stage + 0.12), width, 0.76, facecolor=colour, linewidth=0))
                ax.text(place + width / 2, stage + 0.5, text, color="white", fontsize=8, ha="center", va="center")
        if x:
            ax.plot([x, x], [-0.05, stages], color=INK, linewidth=1.2)
    for stage in range(stages):
        ax.text(-0.08, stage + 0.5, f"stage {stage}", color=INK, fontsize=9, ha="right", va="center")
    words = f"{title}: lines are barriers, 'copy i' starts step i's copies, 'x i' multiplies"
    ax.set_title(words, color=INK, fontsize=10, loc="left")
    return figure


@dataclass(frozen=True)
class Scores:
    """The tiles of scores that a block computes: it keeps rows of one factor and loops over those of the other."""

    title: str
    queries: int
    keys: int
    kept: str  # "q" or "k"
    rows: tuple[int, int]  # of the factor that is kept: the first, and the one after the last
    steps: Sequence[tuple[int, int]]  # rows of the other, in their order

    def place(self, first: int, end: int) -> tuple[tuple[int, int], int, int]:
        """Corner, width and height in the matrix of scores of a step's tile."""
        start, length = self.rows[0], self.rows[1] - self.rows[0]
        return ((first, start), end - first, length) if self.kept == "q" else ((start, first), length, end - first)

    def __str__(self) -> str:
        kept, other = ("queries", "keys") if self.kept == "q" else ("keys", "queries")
        steps = ", ".join(f"{first}-{end - 1}" for first, end in self.steps)
        return f"{self.title}: keeps {kept} {self.rows[0]}-{self.rows[1] - 1}, loops over {other} {steps}"


def scores_picture(panels: Sequence[Scores]) -> Picture:
    """The matrix of scores for each block: what it keeps is a band, and in it are its tiles, numbered by step."""
    figure = Picture(WIDTH / len(panels) + 0.5, "; ".join(map(str, panels)))
    for panel, ax in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        ax.set(xlim=(0, panel.keys), ylim=(panel.queries, 0), aspect="equal")
        ax.set_title(str(panel).partition(", loops")[0].replace(": ", "\n"), color=INK, fontsize=9)
        whole = panel.place(0, panel.keys if panel.kept == "q" else panel.queries)
        ax.add_patch(Rectangle(*whole, facecolor=COLOURS[0], alpha=0.2, linewidth=0))
        for step, (first, end) in enumerate(panel.steps):
            (x, y), wide, high = panel.place(first, end)
            ax.add_patch(Rectangle((x, y), wide, high, facecolor=COLOURS[0], edgecolor="white", linewidth=1.5))
            ax.text(x + wide / 2, y + high / 2, str(step), color="white", fontsize=11, ha="center", va="center")
        for axis, count, word in ((ax.xaxis, panel.keys, "keys"), (ax.yaxis, panel.queries, "queries")):
            axis.set_ticks(range(0, count + 1, max(64, count // 4)))
            axis.set_label_text(word, color=INK, fontsize=9)
        ax.tick_params(colors=INK, labelsize=8, length=2)
        for side in ax.spines.values():
            side.set_color(INK)
    return figure


def spans(numbers: Iterable[int]) -> str:
    """`0-3, 64-67` for 0, 1, 2, 3, 64, 65, 66, 67; evenly spaced single numbers as `0, 16, ..., 112`."""
    ordered = sorted(set(numbers))
    steps = {after - before for before, after in pairwise(ordered)}
    if len(ordered) > 3 and len(steps) == 1 and steps != {1}:
        return f"{ordered[0]}, {ordered[1]}, ..., {ordered[-1]}"
    runs: list[list[int]] = []
    for n in ordered:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _steps(found: Mapping[int, int]) -> str:
    return ", ".join(f"step {step} in stage {stage}" for stage, step in sorted(found.items())) or "nothing"


def _warp_of(thread: int) -> list[int]:
    return list(range(thread // _WARP * _WARP, thread // _WARP * _WARP + _WARP))


def _doing(a: np.ndarray, b: np.ndarray, c: np.ndarray, threads: Sequence[int], name: str) -> str:
    """What some threads copy and compute, in words."""
    mine = [np.isin(owners, threads) for owners in (a, b, c)]
    rows, columns = (sorted(set(found.tolist())) for found in np.nonzero(mine[2]))
    of_a, of_b, of_c = (int(found.sum()) for found in mine)
    return (
        f"{name} copies {of_a} of a's elements and {of_b} of b's, and computes {of_c:,} of c's: "
        f"rows {spans(rows)}; columns {spans(columns)}"
    )


def _tile(ax: Axes, owners: np.ndarray, thread: int) -> None:
    colours = np.array([to_rgb(colour) for colour in COLOURS])
    shown = np.ones((*owners.shape, 4))
    shown[..., :3] = colours[owners // _WARP % len(COLOURS)]
    shown[owners < 0] = 0
    shown[owners == thread] = (*to_rgb(_CHOSEN), 1)
    ax.imshow(shown, aspect="auto", interpolation="nearest")
    ax.tick_params(colors=INK, labelsize=7, length=2, pad=1)
    for side in ax.spines.values():
        side.set_color(INK)
    for axis, length in ((ax.xaxis, owners.shape[1]), (ax.yaxis, owners.shape[0])):
        axis.set_ticks([0, length // 2] if length > 16 else [0, length - 1])
