"""The frames of a film: what each warp of a few blocks did, step by step, and what each request cost.

The tracer gives addresses, not costs. The costs here follow the same documented rules as the tracer's own, which count
all blocks, and were written apart from them: so the frames of a whole run must add up to the report's lines.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

_WARP, _SECTOR, _BANKS, _WORD = 32, 32, 32, 4


@dataclass(frozen=True)
class Frame:
    """One step of one warp: a request to memory, a run of instructions on one line, or a barrier."""

    what: str  # "request", "step", "block barrier", "warp operation", "tile"
    launch: int  # of the report's launches
    block: int  # its number in the grid
    warp: int  # its number in the block
    mask: int  # a bit for each lane that takes part
    file: str  # empty if the place is unknown
    line: int
    kind: str = ""  # of a request: "load", "store", "atomic"; of a tile: "tile load", "tile store"
    space: str = ""  # "global", "shared"
    size: int = 0  # bytes of a lane's access, or of a tile
    region: str = ""  # the tensor or array that the lanes access
    start: int = 0  # its address
    addresses: tuple[int, ...] = ()  # of the active lanes, in their order; in shared memory, offsets
    values: str = ""  # of these lanes, as hexadecimal digits, byte after byte; empty if unknown
    cost: int = 0  # sectors; wavefronts in shared memory
    ideal: int = 0

    @property
    def lanes(self) -> list[int]:
        """The lanes that take part."""
        return lanes_in(self.mask)


@dataclass(frozen=True)
class Film:
    """The frames of all filmed warps, each warp's in the order in which it executed them."""

    frames: tuple[Frame, ...]
    left_out: int  # frames beyond the limit

    def warps(self) -> dict[tuple[int, int, int], list[Frame]]:
        """The frames by launch, block and warp."""
        found: dict[tuple[int, int, int], list[Frame]] = {}
        for frame in self.frames:
            found.setdefault((frame.launch, frame.block, frame.warp), []).append(frame)
        return dict(sorted(found.items()))


def make_film(found: dict, places: Mapping[int, tuple[str, int]]) -> Film:
    """The film in what the tracer found. `places`: file and line of each program counter."""
    return Film(tuple(_frame(each, *places.get(each["pc"], ("", 0))) for each in found["frames"]), found["left_out"])


def _frame(found: dict[str, Any], file: str, line: int) -> Frame:
    fields = {name: found[name] for name in ("what", "launch", "block", "warp", "mask")} | {"file": file, "line": line}
    if found["what"] not in ("request", "tile"):
        return Frame(**fields)
    fields |= {name: found[name] for name in ("kind", "space", "size", "region", "start", "values")}
    addresses = tuple(found["addresses"])
    if found["what"] == "tile":
        cost, ideal = found["sectors"], -(-found["size"] // _SECTOR)
    elif found["space"] == "global":
        cost, ideal = sectors(addresses, found["size"])
    else:
        cost, ideal = wavefronts(dict(zip(lanes_in(found["mask"]), addresses, strict=True)), found["size"])
    return Frame(**fields, addresses=addresses, cost=cost, ideal=ideal)


def lanes_in(mask: int) -> list[int]:
    """The lanes whose bit is set."""
    return [lane for lane in range(_WARP) if mask >> lane & 1]


def sectors(addresses: Iterable[int], size: int) -> tuple[int, int]:
    """The sectors that accesses of `size` bytes touch, and the fewest that hold as many different bytes."""
    different = set(addresses)
    touched = {byte // _SECTOR for address in different for byte in (address, address + size - 1)}
    return len(touched), -(-len(different) * size // _SECTOR)


def wavefronts(address_of: Mapping[int, int], size: int) -> tuple[int, int]:
    """The wavefronts of a shared-memory request, by lane, and those without bank conflicts."""
    total = ideal = 0
    for lanes in served_together(address_of, size):
        words = {
            word
            for lane in lanes
            if lane in address_of
            for word in range(address_of[lane] // _WORD, (address_of[lane] + size - 1) // _WORD + 1)
        }
        if words:
            per_bank = [0] * _BANKS
            for word in words:
                per_bank[word % _BANKS] += 1
            total += max(per_bank)
            ideal += 1
    return total, ideal


def served_together(address_of: Mapping[int, int], size: int) -> Iterator[range]:
    """The groups of lanes of a shared-memory request that are served together.

    Up to 4 bytes these are all 32 lanes, with 8 bytes halves, with 16 quarters. Two neighbouring groups are served as
    one if each lane has the address of its neighbour: the next lane, or the next but one.
    """
    together = _WARP if size <= _WORD else _WARP * _WORD // size
    first = 0
    while first < _WARP:
        end = first + together
        twice = first + 2 * together
        if twice <= _WARP and first % (2 * together) == 0 and any(_paired(address_of, first, twice, f) for f in (1, 2)):
            end = twice
        yield range(first, end)
        first = end


def _paired(address_of: Mapping[int, int], first: int, end: int, flip: int) -> bool:
    return all(address_of.get(lane ^ flip) == address_of[lane] for lane in range(first, end) if lane in address_of)


def for_viewing(frames: Iterable[Frame], launched: tuple[str, int]) -> list[Frame]:
    """One warp's frames without those of unknown place; steps on one line by the same lanes are one frame.

    launched   file and line of the launch: steps there hand over the arguments, and are left out too

    A step right before a request on the same line by the same lanes says nothing more, and is left out.
    """
    known = [frame for frame in frames if frame.line and (frame.what != "step" or (frame.file, frame.line) != launched)]
    merged = [next(group) for _, group in groupby(known, key=lambda f: f if f.what != "step" else (f.line, f.mask))]
    return [
        frame
        for frame, after in zip_longest(merged, merged[1:])
        if not (
            frame.what == "step"
            and after
            and (after.file, after.line, after.mask) == (frame.file, frame.line, frame.mask)
        )
    ]
