"""A film as an HTML page that needs neither a network nor a kernel: a warp steps through its source.

The page is the shell of `pictures` with film.html, film.css and film.js in it, and the frames as its data. It plays
one run or two side by side, in step.
"""

import base64
import gzip
import html
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from kernel_xray.report.facts import Facts, FaultRecord, Writer, source_line
from kernel_xray.report.film_data import Frame, for_viewing
from kernel_xray.report.film_of_fault import faulty_lanes, lane_of, place_of, with_access
from kernel_xray.report.kernel_names import shown_name, shown_names
from kernel_xray.report.shell import Page, assembled

_HERE = Path(__file__).parent
_WARP = 32
_MORE_LINES = 3  # of the source, around the lines of the film
_APART = 512  # bytes: every region begins at a multiple of it, and sectors and banks are divisors of it
MOST_WARPS, MOST_FRAMES = 8, 5_000  # of one run; frames of one warp
BEFORE, AFTER = 150, 50  # frames around the one at which a short film opens
Key = tuple[int, int, int]  # of a filmed warp: its launch, block and number


class Film(Page):
    """What `report.film()` returns: a notebook shows it, and `save` writes it as one file."""

    def __init__(self, page: str):
        super().__init__(page, "film of a warp", 760)

    def as_small_frame(self) -> str:
        """HTML for a notebook in which the page is compressed, and loaded only once it is visible."""
        packed = base64.b64encode(gzip.compress(self.page.encode(), 9, mtime=0)).decode()
        script = (
            f'(async () => {{ const bytes = Uint8Array.from(atob("{packed}"), (c) => c.charCodeAt(0)); '
            "const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')); "
            "const page = await new Response(stream).text(); "
            "document.open(); document.write(page); document.close(); })()"
        )
        text = html.escape(f"<!DOCTYPE html><title>{self.name}</title><script>{script}</script>")
        style = f"width: 100%; height: {self.height}px; border: 0"
        return f'<iframe title="{self.name}" loading="lazy" style="{style}" srcdoc="{text}"></iframe>'


def film(
    *reports: Facts,
    titles: tuple[str, ...] = (),
    warps: int = MOST_WARPS,
    frames: int = MOST_FRAMES,
    wrote: Writer | None = None,
) -> Film:
    """The film of one report, or of two side by side: two variants of a kernel, a race and its fix.

    reports   one or two, each of `xray(..., film=True)`
    titles    one for each report; by default the kernels' names
    warps     most warps that the page has of each report; `frames` most of each warp; the page names what it leaves out
    wrote     the film opens where this thread wrote this element last; by default at the first fault: film_of_fault.py

    Raises ValueError if a report has no film, or none of `wrote`, or for a bad number.
    """
    if len(reports) not in (1, 2):
        raise ValueError(f"film was given {len(reports)} reports; it takes one or two")
    if titles and len(titles) != len(reports):
        raise ValueError(f"{len(titles)} titles were given for {len(reports)} reports; give as many")
    for name, number in (("warps", warps), ("frames", frames)):
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be 1 or more")
    sides, notes = [], []
    for i, report in enumerate(reports):
        kernels = shown_names(launch.kernel for launch in report.launches)
        title = titles[i] if titles else kernels
        side, left = _side(report, title, warps, frames, wrote)
        sides.append(side)
        notes += [f"{title}: {text}" if len(reports) > 1 else text for text in left]
    title = " and ".join(side["title"] for side in sides)
    at = next((side["warps"][side["start"]]["at"] for side in sides if len(sides) == 1), 0)
    return Film(assembled(f"A warp through {title}", _HERE, "film", {"sides": sides, "notes": notes, "at": at}))


def around_opening(report: Facts, wrote: Writer | None = None) -> list[Frame]:
    """The frames around the one at which `film` opens, all of its warp; none if that was not filmed."""
    warps = report.recorded.warps() if report.recorded else {}
    key, at = _opening(report, warps, wrote)
    return warps[key][max(at - BEFORE, 0) : at + AFTER] if key else []


def _opening(report: Facts, warps: dict[Key, list[Frame]], wrote: Writer | None) -> tuple[Key | None, int]:
    """The warp and its frame at which a film opens: the last such write, or the first fault; None if not filmed."""
    if wrote is not None:
        return next(
            (
                (key, i)
                for key, frames in reversed(warps.items())
                if (report.launches[key[0]].kernel, *key[1:]) == (wrote.kernel, wrote.block, wrote.thread // _WARP)
                for i, frame in reversed([*enumerate(frames)])
                if _writes(frame, wrote)
            ),
            (None, 0),
        )
    for key in warps:
        if fault := _fault_of(report, key):
            return key, place_of(fault, _lane_of(report, fault, key), warps[key], report.error is not None)
    return None, 0


def _writes(frame: Frame, wrote: Writer) -> bool:
    """Whether the thread writes the element in this step of its warp."""
    lane = wrote.thread % _WARP
    if frame.kind not in ("store", "atomic") or frame.region != wrote.name or lane not in frame.lanes:
        return False
    start = frame.addresses[frame.lanes.index(lane)] - frame.start
    return start <= wrote.offset < start + frame.size


def _side(
    report: Facts, title: str, most_warps: int, most_frames: int, wrote: Writer | None
) -> tuple[dict[str, Any], list[str]]:
    """The data of one report, and what was left out in words."""
    if report.recorded is None:
        raise ValueError("the report has no film: X-ray with film=True, as in xray(ops.f, x, film=True)")
    places = [(launch.file, launch.line) for launch in report.launches]
    shown = {key: for_viewing(frames, places[key[0]]) for key, frames in report.recorded.warps().items()}
    shown = {key: frames for key, frames in shown.items() if frames}
    if not shown:
        raise ValueError("the film has no frame whose line is known; the filmed blocks accessed no memory")
    keys = list(shown)
    first = {key: frames[:most_frames] for key, frames in shown.items()}
    opening, at = _opening(report, first, wrote)
    kept = keys[:most_warps]
    if opening is not None and opening not in kept:
        kept[-1] = opening
    faulty = 0
    if opening is not None and wrote is None and (fault := _fault_of(report, opening)):
        faulty = faulty_lanes(fault, opening[2], report.launches[opening[0]].block)
        if report.error is not None:
            first[opening], at = with_access(fault, _lane_of(report, fault, opening), first[opening], at)
    tables = _Tables()
    warps = [_warp(report, key, first[key], tables, *((at, faulty) if key == opening else (0, 0))) for key in kept]
    cut = [len(shown[key]) for key in kept if len(shown[key]) > most_frames]
    left = []
    if wrote is not None:
        if opening is None:
            raise ValueError(f"the film has no step in which thread {wrote.thread} wrote to {wrote.name}")
        what = f"element {wrote.offset // wrote.size:,} of {wrote.name}"
        left.append(f"It opens where lane {wrote.thread % _WARP} of this warp writes {what}.")
    if len(keys) > len(kept):
        left.append(f"{len(kept)} of the {len(keys)} filmed warps are here.")
    if cut:
        left.append(f"Only the first {most_frames:,} steps of a warp are here; the longest has {max(cut):,}.")
    if report.recorded.left_out:
        left.append(f"The recording ended early: it left out {report.recorded.left_out:,} steps of all warps.")
    blocks = {launch: sorted({block for number, block, _ in keys if number == launch}) for launch, _, _ in keys}
    for number, filmed in blocks.items():
        launch = report.launches[number]
        if len(filmed) < launch.blocks:
            some = f"{len(filmed)} of {launch.blocks:,} blocks"
            left.append(f"{shown_name(launch.kernel)}: {some} filmed; lines' totals are of all.")
    frames = [frame for key in kept for frame in first[key]]
    side = {
        "title": title,
        "warps": warps,
        "start": kept.index(opening) if opening else 0,
        "sources": _sources(frames, report),
        "totals": _totals(report),
        "faults": {_key(fault.file, fault.line): _in_words(fault) for fault in report.faults},
        **tables.lists(),
    }
    return side, left


def _in_words(fault: FaultRecord) -> str:
    return f"{fault.kind}, thread {fault.thread} of block {fault.block}: {fault.message}"


def _fault_of(report: Facts, key: Key) -> FaultRecord | None:
    """The first fault, if this warp had it."""
    number, block, warp = key
    launch, fault = report.launches[number], next(iter(report.faults), None)
    if fault is None or (launch.kernel, _block_index(block, launch.grid)) != (fault.kernel, fault.block):
        return None
    return fault if lane_of(fault, warp, launch.block) is not None else None


def _lane_of(report: Facts, fault: FaultRecord, key: Key) -> int:
    """The lane that had a fault of this warp."""
    return lane_of(fault, key[2], report.launches[key[0]].block) or 0


def _warp(report: Facts, key: Key, frames: list[Frame], tables: "_Tables", at: int, faulty: int) -> dict[str, Any]:
    number, block, warp = key
    launch = report.launches[number]
    index = ", ".join(map(str, _block_index(block, launch.grid)))
    return {
        "name": f"{shown_name(launch.kernel)}, block ({index}), warp {warp}",
        "warp": warp,
        "threads": launch.block,
        "at": at,
        "faulty": faulty,
        "frames": [tables.packed(frame) for frame in frames],
    }


def _block_index(number: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])


def _key(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"


class _Tables:
    """What frames share: each different operation, list of addresses and list of values is written once."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Any, int]] = {"operations": {}, "addresses": {}, "values": {}}

    def _number(self, table: str, value: Any) -> int:
        return self._known[table].setdefault(value, len(self._known[table]))

    def packed(self, frame: Frame) -> list[Any]:
        """[operation, lanes] of a step; also [..., addresses, values, cost, ideal] of a request. See film.js."""
        fields: dict[str, Any] = {"what": frame.what, "file": Path(frame.file).name, "line": frame.line}
        if not frame.kind:
            return [self._number("operations", json.dumps(fields)), frame.mask]
        fields |= {name: getattr(frame, name) for name in ("kind", "space", "size", "region")}
        base = frame.start - frame.start % _APART  # which tensor comes first differs from run to run
        fields["start"] = frame.start - base
        addresses = [address - base for address in frame.addresses]
        deltas = tuple(address - last for address, last in zip(addresses, (0, *addresses), strict=False))
        return [
            self._number("operations", json.dumps(fields)),
            frame.mask,
            self._number("addresses", deltas),
            self._number("values", frame.values),
            frame.cost,
            frame.ideal,
        ]

    def lists(self) -> dict[str, list[Any]]:
        operations = [json.loads(text) for text in self._known["operations"]]
        return {
            "operations": operations,
            "addresses": list(self._known["addresses"]),
            "values": list(self._known["values"]),
        }


def _sources(frames: list[Frame], report: Facts) -> list[tuple[str, int, list[str]]]:
    """The parts of the sources that the film passes through: file, first line, lines."""
    wanted: dict[str, set[int]] = defaultdict(set)
    places = [(frame.file, frame.line) for frame in frames] + [(f.file, f.line) for f in report.faults if f.line]
    for file, line in dict.fromkeys(places):
        wanted[file] |= set(range(max(line - _MORE_LINES, 1), line + _MORE_LINES + 1))
    parts: list[tuple[str, int, list[str]]] = []
    for file, numbers in wanted.items():
        for number in sorted(numbers):
            text = source_line(file, number)
            if parts and parts[-1][0] == Path(file).name and parts[-1][1] + len(parts[-1][2]) == number:
                parts[-1][2].append(text)
            else:
                parts.append((Path(file).name, number, [text]))
    return parts


def _totals(report: Facts) -> dict[str, str]:
    """What each line costs in all traced blocks, in words."""
    words: dict[str, list[str]] = defaultdict(list)
    for record in report.lines:
        unit = record.unit.removesuffix("s") if record.cost == 1 else record.unit
        words[_key(record.file, record.line)].append(f"{record.kind} {record.cost:,} {unit} (best {record.ideal:,})")
    return {key: "; ".join(texts) for key, texts in words.items()}
