"""A filmed block at its tiles: which thread copied and computed which element, and which stage it filled when.

Everything is read from the film of one traced run, `xray(..., film=True)`, so a picture shows what the kernel did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from helpers.pages.pictures.fragments import banks_picture
from helpers.pages.pictures.tiles import Scores, block_picture, scores_picture, stages_picture
from kernel_xray.report.canvas import Picture

if TYPE_CHECKING:
    from kernel_xray.report.facts import Facts
    from kernel_xray.report.film_data import Frame

_WARP = 32
_MATRIX = re.compile(r"(?P<name>\w+) \((?P<rows>\d+)x(?P<columns>\d+) (?P<dtype>\w+)\)")
_ROWS = re.compile(r"(?P<name>[qk]) \((?:\d+x)*(?P<rows>\d+)x(?P<columns>\d+) (?P<dtype>\w+)\)")
_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def tiles_at_work(report: Facts, thread: int = 0) -> Picture:
    """Which thread of the filmed block copies each element of a and b, and which computes each element of c.

    report   of `xray(matmul, a, b, film=True)`, where c is one tile of the kernel and k one step
    thread   whose elements the picture marks

    Raises ValueError if no block was filmed, if an operand is not a matrix of the call, or if several blocks ran.
    """
    frames = _frames(report)
    if report.launches[0].blocks != 1:
        raise ValueError(f"{report.launches[0].blocks:,} blocks ran; give a and b whose product is one tile")
    copied = {}
    for name in ("a", "b"):
        loads = [f for f in frames if (f.space, f.kind) == ("global", "load") and f.region.startswith(f"{name} (")]
        found = _MATRIX.fullmatch(loads[0].region) if loads else None
        if not found:
            raise ValueError(f"the filmed block reads no matrix {name}; call the function with a and b by position")
        copied[name] = _owners(loads, int(found["rows"]), int(found["columns"]), _BYTES[found["dtype"]])
        size = _BYTES[found["dtype"]]
    stores = [f for f in frames if (f.space, f.kind) == ("global", "store")]
    c = _owners(stores, len(copied["a"]), copied["b"].shape[1], size)
    return block_picture(_kernel(report), copied["a"], copied["b"], c, thread)


def stages_at_work(report: Facts, stages: int) -> Picture:
    """Which stage the filmed block fills and which it multiplies between two barriers.

    report   of `xray(matmul, a, b, film=True)`, for a kernel whose shared memory is `stages` stages of one size

    Raises ValueError if no block was filmed, or if its shared memory does not divide into so many stages.
    """
    launch = report.launches[0]
    size, rest = divmod(launch.shared_static + launch.shared_dynamic, stages)
    if rest or not size:
        raise ValueError(f"{size * stages + rest:,} bytes of shared memory are not {stages} stages of one size")
    first = [frame for frame in _frames(report) if (frame.block, frame.warp) == (0, 0)]
    filled_with: dict[int, int] = {}  # stage -> the step whose tiles it has
    steps, intervals = 0, []
    for part in _between_barriers(first):
        filled, read = dict[int, int](), dict[int, int]()
        for frame in part:
            if frame.space != "shared":
                continue
            stage = frame.addresses[0] // size
            if frame.kind == "load":
                read[stage] = filled_with[stage]
            elif stage not in filled:
                filled[stage] = filled_with[stage] = steps
                steps += 1
        if filled or read:
            intervals.append((filled, read))
    return stages_picture(_kernel(report), intervals, stages)


def scores_at_work(*reports: Facts) -> Picture:
    """Which tiles of the scores, queries by keys, the filmed block of each attention kernel computes, in their order.

    reports   of `xray(attention, q, k, v, film=[block])` or its backward, for one head

    Raises ValueError if no block was filmed, or if none reads both q and k.
    """
    blocks: dict[tuple[int, int, int], list[Frame]] = {}
    for number, report in enumerate(reports):
        for frame in _filmed(report):
            blocks.setdefault((number, frame.launch, frame.block), []).append(frame)
    drawn = [_scores(reports[key[0]], frames) for key, frames in sorted(blocks.items())]
    panels = [panel for panel in drawn if panel]
    if not panels:
        raise ValueError("no filmed block reads both q and k; call an attention with q, k and v by position")
    return scores_picture(panels)


def _scores(report: Facts, frames: list[Frame]) -> Scores | None:
    """What a block keeps of q or of k, and which rows of the other it copies between two barriers, in their order."""
    rows: dict[str, dict[int, set[int]]] = {}  # matrix -> interval -> rows
    sizes = {}
    for warp in {frame.warp for frame in frames}:
        for interval, part in enumerate(_between_barriers([frame for frame in frames if frame.warp == warp])):
            for frame in part:
                found = _ROWS.fullmatch(frame.region) if (frame.space, frame.kind) == ("global", "load") else None
                if found:
                    sizes[found["name"]] = int(found["rows"])
                    size = int(found["columns"]) * _BYTES[found["dtype"]]
                    new = ((address - frame.start) // size for address in frame.addresses)
                    rows.setdefault(found["name"], {}).setdefault(interval, set()).update(new)
    if len(rows) < 2:
        return None
    kept, inner = sorted(rows, key=lambda name: len(rows[name]))  # one is copied once, the other in every step
    spans = [(min(found), max(found) + 1) for _, found in sorted(rows[inner].items())]
    once = set().union(*rows[kept].values())
    title = f"{_kernel(report, frames[0].launch)}, block {frames[0].block}"
    return Scores(title, sizes["q"], sizes["k"], kept, (min(once), max(once) + 1), spans)


def _between_barriers(frames: list[Frame]) -> Iterator[list[Frame]]:
    part: list[Frame] = []
    for frame in frames:
        if frame.what == "block barrier":
            yield part
            part = []
        elif frame.what == "request":
            part.append(frame)
    yield part


def _owners(frames: list[Frame], rows: int, columns: int, size: int) -> np.ndarray:
    """For each element of a row-major matrix, the thread that accessed it last, or -1. `size`: of an element."""
    owners = np.full(rows * columns, -1)
    start = min(frame.start for frame in frames)
    for frame in frames:
        for lane, address in zip(frame.lanes, frame.addresses, strict=True):
            first = (address - start) // size
            owners[first : first + frame.size // size] = frame.warp * _WARP + lane
    return owners.reshape(rows, columns)


def _frames(report: Facts) -> list[Frame]:
    return [frame for frame in _filmed(report) if frame.block == 0]


def _filmed(report: Facts) -> tuple[Frame, ...]:
    if report.recorded is None or not report.recorded.frames:
        raise ValueError("nothing was filmed: call helpers.xray(..., film=True)")
    if report.recorded.left_out:
        raise ValueError(f"the film lacks its last {report.recorded.left_out:,} frames: film a smaller product")
    return report.recorded.frames


def _kernel(report: Facts, launch: int = 0) -> str:
    return report.launches[launch].kernel.partition("<")[0]


def banks_at_work(reports: Mapping[str, Facts]) -> Picture:
    """In which banks the rows of a tile lie that a filmed warp copied to shared memory and read by ldmatrix.

    reports   name -> of `xray(copy_by_matrices, x, ..., film=True)`: a kernel that copies pieces of 16 bytes, each by a
              load from global memory and a store to shared memory, and reads them back in rows of 8 pieces

    Raises ValueError if no block was filmed.
    """
    tiles, read = {}, {}
    for name, report in reports.items():
        requests = [frame for frame in _frames(report) if frame.what == "request"]
        loads = [frame for frame in requests if (frame.space, frame.kind, frame.size) == ("global", "load", 16)]
        stores = [frame for frame in requests if (frame.space, frame.kind, frame.size) == ("shared", "store", 16)]
        offsets: dict[int, int] = {}  # number of a piece in global memory -> where it lies in shared memory
        for load, store in zip(loads, stores, strict=True):
            for source, target in zip(load.addresses, store.addresses, strict=True):
                offsets[(source - load.start) // 16] = target
        tiles[name] = [[offsets[8 * row + piece] for piece in range(8)] for row in range(8)]
        matrices = next(frame for frame in requests if (frame.space, frame.kind) == ("shared", "load"))
        read[name] = list(matrices.addresses[:8])
    return banks_picture(tiles, read)
