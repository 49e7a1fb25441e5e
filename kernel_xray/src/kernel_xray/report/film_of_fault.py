"""Where a film opens if its warp has a fault: at the request that was wrong, with the faulty lanes in it.

A fault that ends the kernel keeps its lane from the access, so the tracer has no request with it: the lane's address is
computed from the fault's message, which names it relative to a tensor whose place other requests tell.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kernel_xray.report.facts import FaultRecord
from kernel_xray.report.film_data import Frame

_WARP = 32
_ACCESS = re.compile(r"(?:an? )?(?:atomic )?(?P<verb>read|write|update)s?\b(?: (?P<size>\d+) bytes?)?")
_OTHER = re.compile(r"by thread \((\d+), (\d+), (\d+)\) of the same block")  # of a race
_PLACE = re.compile(
    r"(?P<within>of which )?(?:(?P<bytes>\d+) bytes? |just )(?P<where>before the start|past the end) of (?P<region>.*)"
)
_KINDS = {"read": "load", "write": "store", "update": "atomic"}
_EXTENT = re.compile(r"\((?P<count>[\d,]+) (?:b?float|u?int|complex)(?P<bits>\d+)\)")


def lane_of(fault: FaultRecord, warp: int, size: Sequence[int]) -> int | None:
    """The lane of a warp of the fault's block that had the fault. `size`: of a block, in threads."""
    return _lane(fault.thread, warp, size)


def faulty_lanes(fault: FaultRecord, warp: int, size: Sequence[int]) -> int:
    """A bit for each lane of the warp that the fault names: of a race, both sides."""
    threads = [fault.thread, *(tuple(map(int, found)) for found in _OTHER.findall(fault.message))]
    lanes = {_lane(thread, warp, size) for thread in threads} - {None}
    return sum(1 << lane for lane in lanes if lane is not None)


def _lane(thread: Sequence[int], warp: int, size: Sequence[int]) -> int | None:
    x, y, z = thread
    number = x + size[0] * (y + size[1] * z)
    return number % _WARP if number // _WARP == warp else None


def place_of(fault: FaultRecord, lane: int, frames: Sequence[Frame], ended: bool) -> int:
    """The number of the frame in which `lane` has the fault, or should have had it, if that ended the kernel."""
    here = [i for i, frame in enumerate(frames) if (frame.file, frame.line) == (fault.file, fault.line)]
    took_part = [i for i, frame in enumerate(frames) if frame.mask >> lane & 1]
    if ended:
        last = took_part[-1] if took_part else -1
        others = [i for i in here if i > last and frames[i].kind == _kind(fault)]
        return others[0] if others else max(last, 0) if took_part else len(frames) - 1
    own = [i for i in here if i in set(took_part)]
    accesses = [i for i in own if frames[i].kind and _kind(fault) in ("", frames[i].kind)]
    return (accesses or own or here or [len(frames) - 1])[0]


def with_access(fault: FaultRecord, lane: int, frames: Sequence[Frame], at: int) -> tuple[list[Frame], int]:
    """The frames with the access that the fault has ended, and the number of the frame that shows it.

    It joins the request at `at` if the lane takes no part in it, else it is a request of its own after that frame.
    """
    found = _access(fault, frames)
    frame = frames[at]
    if found is None or (frame.kind and frame.mask >> lane & 1 == 0 and frame.region != found.region):
        return list(frames), at
    if frame.kind != found.kind or frame.mask >> lane & 1:
        alone = replace(found, launch=frame.launch, block=frame.block, warp=frame.warp, mask=1 << lane)
        return [*frames[: at + 1], alone, *frames[at + 1 :]], at + 1
    before = (frame.mask & ((1 << lane) - 1)).bit_count()
    addresses = (*frame.addresses[:before], *found.addresses, *frame.addresses[before:])
    digits = 2 * frame.size
    unknown = "0" * digits if frame.values else ""  # nobody reads them: the lane is drawn as faulty
    values = frame.values[: before * digits] + unknown + frame.values[before * digits :]
    joined = replace(frame, mask=frame.mask | 1 << lane, addresses=addresses, values=values)
    return [*frames[:at], joined, *frames[at + 1 :]], at


def _kind(fault: FaultRecord) -> str:
    found = _ACCESS.match(fault.message)
    return _KINDS[found["verb"]] if found else ""


def _access(fault: FaultRecord, frames: Sequence[Frame]) -> Frame | None:
    """The access that a fault names, without its warp; None if its place is not known."""
    access, place = _ACCESS.match(fault.message), _PLACE.search(fault.message)
    extent = _EXTENT.search(place["region"]) if place else None
    like = next((frame for frame in frames if place and frame.region == place["region"]), None)
    if not access or not access["size"] or not place or not extent or not like:
        return None
    size, far = int(access["size"]), int(place["bytes"] or 0)
    end = like.start + int(extent["count"].replace(",", "")) * int(extent["bits"]) // 8
    address = like.start - far if place["where"] == "before the start" else end + far - size * bool(place["within"])
    frame = replace(like, file=fault.file, line=fault.line, kind=_kind(fault), size=size, addresses=(address,))
    return replace(frame, values="", cost=0, ideal=0)
