"""The limits of launches as records, as a table and as a figure. limits.py computes them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from kernel_xray.report.facts import Launch
from kernel_xray.report.gpu_models import GPU
from kernel_xray.report.kernel_names import shown_name
from kernel_xray.report.text import size_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 88  # a lesson's column
_MARKS = {"*": "*: the bound, which it cannot beat.", "~": "~: an estimate, which it may beat."}


@dataclass(frozen=True)
class Limit:
    """What one resource costs a launch at least."""

    resource: str
    seconds: float
    work: str  # how much, in words
    estimate: str = ""  # why it may be too high; empty for a bound

    @property
    def is_bound(self) -> bool:
        """Whether the launch cannot take less."""
        return not self.estimate


@dataclass(frozen=True)
class LaunchLimits:
    """The limits of one launch, the largest first."""

    launch: Launch
    limits: tuple[Limit, ...]
    not_counted: tuple[str, ...] = ()  # what else takes time

    @property
    def bound(self) -> Limit | None:
        """The largest that is a bound: the launch takes this long at least. None if no count is whole."""
        return next((limit for limit in self.limits if limit.is_bound), None)

    @property
    def title(self) -> str:
        """The launch, and how much of it was traced."""
        launch = self.launch
        sample = f", {launch.traced_blocks} of {launch.blocks:,} blocks" * (launch.traced_blocks < launch.blocks)
        return f"{shown_name(launch.kernel)}<<<{size_text(launch.grid)}, {size_text(launch.block)}>>>{sample}"

    def mark(self, limit: Limit) -> str:
        """`*` for the bound, `~` for an estimate."""
        return "*" if limit is self.bound else " " if limit.is_bound else "~"

    def __str__(self) -> str:
        rows = (f"{self.mark(x)} {x.resource:<20}{_time(x.seconds, '>11.3f')}  {x.work}" for x in self.limits)
        return "\n".join([self.title, *rows])


@dataclass(frozen=True)
class Limits:
    """The limits of all launches of a report on one GPU; as text, a table."""

    gpu: GPU
    launches: tuple[LaunchLimits, ...]

    def __str__(self) -> str:
        parts = [f"At least, on an {self.gpu.name} with a cold L2 cache:"]
        for text, number in Counter(map(str, self.launches)).items():
            parts.append(text if number == 1 else text.replace("\n", f", {number} times\n", 1))
        unknown = [each for launch in self.launches for each in launch.not_counted]
        marks = {each.mark(limit) for each in self.launches for limit in each.limits}
        parts += ["  ".join(words for mark, words in _MARKS.items() if mark in marks)] * bool(marks & {*_MARKS})
        left_out = "Not counted: " + ", ".join(dict.fromkeys(unknown)) + "."
        return "\n".join([*parts, *wrap(left_out, _WIDTH)])

    def plot(self, measured: float | None = None) -> Figure:
        """Draws a bar for each resource of each launch and, where there is one launch, a line at `measured` seconds.

        The title compares the time with the bound of all launches or, of a sample, with the largest estimate. Raises
        ValueError if no kernel was launched, or `measured` is not greater than 0.
        """
        from kernel_xray.report.limits_figure import draw  # needs matplotlib, which takes a while to import

        if measured is not None and not measured > 0:
            raise ValueError(f"measured is {measured}; it must be greater than 0: seconds")
        if not self.launches:
            raise ValueError("no traced kernel was launched, so there is nothing to draw")
        bars = {
            each.title: [(x.resource, x.seconds * 1e6, each.mark(x)) for x in each.limits] for each in self.launches
        }
        title = f"At least, on an {self.gpu.name}" + (self._compared(measured) if measured else "")
        return draw(title, bars, measured * 1e6 if measured and len(self.launches) == 1 else None)

    def _compared(self, measured: float) -> str:
        largest = [each.bound or each.limits[0] for each in self.launches if each.limits]
        what = "bound" if all(limit.is_bound for limit in largest) else "estimate"
        least = sum(limit.seconds for limit in largest)
        return f": measured {_time(measured, '.4g')}, {measured / least:.2f} times the {what}"


def _time(seconds: float, form: str) -> str:
    """In microseconds or, from 1,000 of them on, in milliseconds."""
    return f"{seconds * 1e3:{form}} ms" if seconds >= 1e-3 else f"{seconds * 1e6:{form}} us"
