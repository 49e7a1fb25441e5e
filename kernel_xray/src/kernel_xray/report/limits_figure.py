"""The figure of limits: a bar for each resource, in microseconds, and a line at the time that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_xray.report.canvas import INK, Picture

Bar = tuple[str, float, str]  # resource, microseconds, mark
_COLOURS = {"*": "#c62828", " ": "#5b7fa6", "~": "#c3ccd6"}  # the bound, other bounds, estimates
_ROW, _HEAD = 0.3, 0.8  # inches: of a bar; of a launch's title and axis


def draw(title: str, launches: Mapping[str, Sequence[Bar]], measured: float | None) -> Picture:
    """The picture that `Limits.plot` returns; its text is its title. `measured`: microseconds, of a line."""
    heights = [_HEAD + _ROW * len(bars) for bars in launches.values()]
    picture = Picture(sum(heights) + 0.3, title)
    picture.suptitle(title, fontsize="medium", color=INK)
    rows = list(picture.subplots(len(launches), 1, squeeze=False, height_ratios=heights)[:, 0])
    for axes, (launch, bars) in zip(rows, launches.items(), strict=True):
        names, widths, marks = zip(*bars, strict=True)
        axes.barh(names, widths, color=[_COLOURS[mark] for mark in marks])
        axes.invert_yaxis()
        if measured is not None:
            axes.axvline(measured, color=INK, linewidth=2)
        axes.set_title(launch, fontsize="small", loc="left")
    of_line = "" if measured is None else "; line: measured"
    rows[-1].set_xlabel(f"us; red: the bound, blue: other bounds, grey: estimates{of_line}")
    return picture
