"""Pictures of one request: the 32 lanes of a warp above the sectors or banks that they access."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib import colormaps
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from kernel_xray.report.canvas import INK, Picture
from kernel_xray.report.facts import Line
from kernel_xray.report.film_data import sectors, served_together, wavefronts
from kernel_xray.report.text import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from kernel_xray.report.facts import Facts

_LANES, _SECTOR, _LINE, _BANKS, _WORD = 32, 32, 128, 32, 4
_WIDTH = 32.0  # of the drawing; a lane is one unit wide
_GLOBAL_HEIGHT = 8.2
_UNUSED = "#80808038"  # moved but not requested: a pale grey on either background
_TURBO = colormaps["turbo"]
Colour = tuple[float, float, float, float]


@dataclass(frozen=True)
class Request:
    """One request, as it is drawn."""

    title: str
    space: str  # "global" or "shared"
    size: int  # bytes of one lane's access
    lanes: tuple[tuple[int, int], ...]  # lane and address


def draw(report: Facts, line: int | None) -> Picture:
    """The picture that `Report.plot` returns."""
    records = [r for r in report.lines if r.lanes]
    if not records:
        raise ValueError("nothing was recorded that could be drawn: no lane of a traced kernel touched memory")
    worst = max(records, key=lambda record: record.cost - record.ideal)
    chosen = [r for r in records if r.line == line] if line is not None else [worst]
    if not chosen:
        there = ", ".join(str(n) for n in sorted({r.line for r in records}))
        raise ValueError(f"no access was recorded on line {line}; there are some on {there}")
    return drawn([Request(_title(r), r.space, r.size, r.lanes) for r in chosen])


def drawn(requests: Sequence[Request]) -> Picture:
    """A picture of requests, one below the other; its text is their titles."""
    heights = [_shared_height(r) if r.space == "shared" else _GLOBAL_HEIGHT for r in requests]
    picture = Picture(0.28 * sum(heights) + 0.35, "\n".join(r.title for r in requests))
    rows = picture.subplots(len(requests), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, request, height in zip(rows, requests, heights, strict=True):
        axes.set_xlim(-0.2, _WIDTH + 0.2)
        axes.set_ylim(height - 1.2, -0.2)
        axes.axis("off")
        axes.set_title(request.title, color=INK, fontsize=9.5, loc="left")
        _lanes(axes, request)
        (_sectors if request.space == "global" else _banks)(axes, request)
    return picture


def _title(record: Line) -> str:
    cost, ideal, unit = request_cost(record)
    place = f"{Path(record.file).name}:{record.line}"
    access = f"{record.space} {record.kind}, {count_text(record.size, 'byte')} a lane"
    best = "the fewest possible" if cost == ideal else f"where {ideal} would do: efficiency {ideal / cost:.0%}"
    return f"{place}  {access}: {count_text(cost, unit)} a request, {best}"


def request_cost(record: Line) -> tuple[int, int, str]:
    """Cost, least possible cost and unit of the request that is drawn."""
    if record.space == "global":
        return *sectors([address for _, address in record.lanes], record.size), "sector"
    return *wavefronts(dict(record.lanes), record.size), "wavefront"


def _colour(lane: int) -> Colour:
    """From violet to red, and dark enough for a line on white paper and for white text on it."""
    red, green, blue, _ = _TURBO(0.10 + 0.81 * lane / (_LANES - 1))
    darker = min(1.0, (0.18 / (0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2)) ** (1 / 2.2))
    return red * darker, green * darker, blue * darker, 1.0


def _lanes(axes: Axes, record: Request) -> None:
    """The warp; inactive lanes are empty."""
    active = {lane for lane, _ in record.lanes}
    for lane in range(_LANES):
        if lane in active:
            _cell(axes, lane, 0, 1, 1, _colour(lane), str(lane), 6.5)
        else:
            axes.add_patch(Rectangle((lane + 0.06, 0.06), 0.88, 0.88, fill=False, edgecolor=INK, linewidth=0.4))


def _caption(axes: Axes, y: float, text: str) -> None:
    axes.text(_WIDTH / 2, y, text, ha="center", va="center", fontsize=8, color=INK)


def _cell(axes: Axes, x: float, y: float, width: float, height: float, colour: Colour, text: str, size: float) -> None:
    gap = min(0.06, width * 0.08)
    axes.add_patch(Rectangle((x + gap, y + 0.06), width - 2 * gap, height - 0.12, facecolor=colour, linewidth=0))
    if text and width > 0.2 * len(text) + 0.12:
        axes.text(x + width / 2, y + height / 2, text, ha="center", va="center_baseline", fontsize=size, color="white")


def _ray(axes: Axes, lane: int, x: float, y: float) -> None:
    axes.plot([lane + 0.5, x], [1.0, y], color=_colour(lane), linewidth=0.8, alpha=0.75, solid_capstyle="round")


# -- global memory -----------------------------------------------------------------------------------------------------


def _touched_sectors(record: Request) -> list[int]:
    touched = set()
    for _, address in record.lanes:
        touched |= set(range(address // _SECTOR, (address + record.size - 1) // _SECTOR + 1))
    return sorted(touched)


def _sectors(axes: Axes, record: Request) -> None:
    """The touched sectors in the order of their addresses, with a gap where the sectors between are untouched."""
    top, gap = 4.2, 0.25
    touched = _touched_sectors(record)
    gaps = sum(b != a + 1 for a, b in pairwise(touched))
    gap = min(gap, 0.35 * _WIDTH / max(gaps, 1) / 2)
    width = min(8.0, (_WIDTH - gap * gaps) / len(touched))
    x = (_WIDTH - gap * gaps - width * len(touched)) / 2
    places, previous = {}, None
    for sector in touched:
        x += gap if previous is not None and sector != previous + 1 else 0
        places[sector] = x
        axes.add_patch(Rectangle((x + 0.03, top), width - 0.06, 1.4, facecolor=_UNUSED, edgecolor=INK, linewidth=0.5))
        x, previous = x + width, sector
    start = min(address for _, address in record.lanes) // _LINE * _LINE
    _offsets(axes, places, width, top + 1.5, start)

    def where(address: int) -> float:
        return places[address // _SECTOR] + width * (address % _SECTOR) / _SECTOR

    users: dict[int, list[int]] = {}
    for lane, address in record.lanes:
        users.setdefault(address, []).append(lane)
    for address, lanes in users.items():
        text = str(lanes[0]) if len(lanes) == 1 else f"×{len(lanes)}"
        if width * record.size / _SECTOR < 0.52:  # two digits would not fit: no numbers
            text = ""
        done = 0
        while done < record.size:  # an access may cross the end of a sector
            piece = min(record.size - done, _SECTOR - (address + done) % _SECTOR)
            _cell(axes, where(address + done), top, width * piece / _SECTOR, 1.4, _colour(lanes[0]), text, 6)
            done += piece
        for lane in lanes:
            _ray(axes, lane, where(address) + width * min(record.size, _SECTOR - address % _SECTOR) / _SECTOR / 2, top)
    used = len({a + i for _, a in record.lanes for i in range(record.size)})
    moved = len(touched) * _SECTOR
    what = f"{count_text(len(touched), 'sector')} of 32 bytes = {moved} bytes moved, {used} requested (coloured)"
    _caption(axes, top + 2.75, f"above: the 32 lanes of a warp · below: {what}")


def _offsets(axes: Axes, places: dict[int, float], width: float, y: float, start: int) -> None:
    """The byte offset under the first sector of each run, if it fits."""
    last = -10.0
    for sector, x in places.items():
        run_begins = sector - 1 not in places or (sector * _SECTOR % _LINE == 0 and width > 1)
        if run_begins and x - last > 1.9:
            axes.text(x, y + 0.1, f"+{sector * _SECTOR - start}", ha="left", va="top", fontsize=6.5, color=INK)
            last = x


# -- shared memory -----------------------------------------------------------------------------------------------------


def _wavefronts(record: Request) -> list[tuple[int, dict[int, tuple[int, list[int]]]]]:
    """One entry per wavefront: its phase and, for each bank, the word that it serves and the lanes that get it."""
    rows = []
    offsets = dict(record.lanes)
    for phase, served in enumerate(served_together(offsets, record.size)):
        by_bank: dict[int, dict[int, list[int]]] = {}
        for lane in (lane for lane in served if lane in offsets):
            for word in range(offsets[lane] // _WORD, (offsets[lane] + record.size - 1) // _WORD + 1):
                by_bank.setdefault(word % _BANKS, {}).setdefault(word, []).append(lane)
        for turn in range(max((len(words) for words in by_bank.values()), default=0)):
            row = {bank: list(words.items())[turn] for bank, words in by_bank.items() if turn < len(words)}
            rows.append((phase, row))
    return rows


def _shared_height(record: Request) -> float:
    return 6.2 + len(_wavefronts(record)) * _row_height(record)


def _row_height(record: Request) -> float:
    return 1.0 if len(_wavefronts(record)) <= 8 else 0.5


def _banks(axes: Axes, record: Request) -> None:
    """The 32 banks side by side; each row is a wavefront, in which a bank serves one word."""
    top, rows, height = 4.2, _wavefronts(record), _row_height(record)
    for bank in range(_BANKS):
        axes.text(bank + 0.5, top - 0.12, str(bank), ha="center", va="bottom", fontsize=5.5, color=INK)
    y, seen, idle = top, set(), []
    for phase, row in rows:
        for bank in range(_BANKS):
            if bank not in row:
                idle.append(Rectangle((bank + 0.06, y + 0.05), 0.88, height - 0.1))
                continue
            _, lanes = row[bank]
            text = str(lanes[0]) if len(lanes) == 1 else f"×{len(lanes)}"
            _cell(axes, bank, y, 1, height, _colour(lanes[0]), text, 6 if height == 1 else 4.5)
            for lane in lanes:
                if (phase, lane) not in seen:
                    _ray(axes, lane, bank + 0.5, top - 0.65)
                    seen.add((phase, lane))
        y += height
    axes.add_collection(PatchCollection(idle, facecolor=_UNUSED, linewidth=0))  # at once: there may be a thousand
    what = f"the 32 banks, one row per wavefront: {count_text(len(rows), 'row')}; grey banks are idle"
    _caption(axes, y + 0.75, f"above: the 32 lanes of a warp · below: {what}")
