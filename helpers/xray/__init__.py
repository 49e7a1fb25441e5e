"""X-ray: which line of a kernel wastes memory traffic, and what is wrong with it.

`xray(function, *args)` runs a function whose kernels were loaded with `helpers.load(..., traced=True)` and returns a
Report. It needs no GPU; what it counts are the hardware's own units (sectors, requests, wavefronts), never time.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from helpers.simt import faults
from helpers.xray import symbols, tracer
from helpers.xray.report import FaultRecord, Launch, Line, Report

__all__ = ["FaultRecord", "Launch", "Line", "Report", "xray"]

_active = False


def xray(
    function: Callable, *args: Any, seed: int | None = None, max_blocks: int = 64, budget: int = 20_000_000, **kwargs: Any
) -> Report:
    """Runs `function(*args, **kwargs)` under the tracer.

    function    calls kernels that were loaded with traced=True; others run as ever
    seed        of the order in which blocks, warps and lanes take turns; by default drawn anew, and in the report
    max_blocks  of a launch that are traced; larger launches are sampled evenly, first and last block included
    budget      steps that a block may take before it counts as endless

    A fault ends the function; it is in `report.faults`, and `report.result` is None. Other exceptions of the function
    are raised as they are. Raises RuntimeError if called inside itself, ValueError for a bad number.
    """
    global _active
    if _active:
        raise RuntimeError("xray was called by the function that it X-rays; call it once, on the outside")
    for name, number in (("max_blocks", max_blocks), ("budget", budget)):
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be 1 or more")
    seed = random.getrandbits(32) if seed is None else seed
    faults.install()
    tracer.begin(seed, max_blocks, budget)
    tracer.register(args, kwargs)
    _active = True
    result, error = None, None
    try:
        with faults.fresh_allocations_known():
            result = function(*args, **kwargs)
    except faults.KernelFault as fault:
        error = fault
    finally:
        _active = False
        found = tracer.end()
    report = _report(found, result, seed)
    report.error = error
    if error is not None and not report.faults:  # a fault that the tracer has no record of: an assert, a trap
        report.faults.append(FaultRecord(error.kind, "", 0, "", (0, 0, 0), (0, 0, 0), str(error)))
    return report


def in_progress() -> bool:
    """Whether a function is being X-rayed."""
    return _active


def _report(found: dict, result: Any, seed: int) -> Report:
    addresses = [a["pc"] for a in found["accesses"]]
    addresses += [f[key] for f in found["findings"] for key in ("pc", "other_pc") if f[key]]
    places = symbols.resolve(addresses)
    unknown = ("", 0)
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for access in found["accesses"]:
        file, line = places.get(access["pc"], unknown)
        groups[file, line, access["kernel"], access["space"], access["kind"]].append(access)
    lines = [_line(key, group) for key, group in sorted(groups.items())]
    records = []
    for finding in found["findings"]:
        message = finding["message"]
        if finding["other_pc"]:
            other_file, other_line = places.get(finding["other_pc"], unknown)
            message += f"; the other one is at {other_file.rpartition('/')[2]}:{other_line}"
        file, line = places.get(finding["pc"], unknown)
        block, thread = tuple(finding["block"]), tuple(finding["thread"])
        records.append(FaultRecord(finding["kind"], file, line, finding["kernel"], block, thread, message))
    launches = [
        Launch(
            kernel=entry["kernel"],
            file=entry["file"],
            line=entry["line"],
            grid=tuple(entry["grid"]),
            block=tuple(entry["block"]),
            blocks=entry["blocks"],
            traced_blocks=entry["traced_blocks"],
            active_lanes=entry["lane_steps"] / entry["steps"] if entry["steps"] else 0.0,
            shared_static=entry["shared_static"],
            shared_dynamic=entry["shared_dynamic"],
        )
        for entry in found["launches"]
    ]
    return Report(result, lines, records, launches, seed)


def _line(key: tuple, group: list[dict]) -> Line:
    def total(name: str) -> int:
        return sum(access[name] for access in group)

    fullest = max(group, key=lambda access: len(access["picture"]))
    return Line(
        *key,
        requests=total("requests"),
        sectors=total("sectors"),
        ideal_sectors=total("ideal_sectors"),
        wavefronts=total("wavefronts"),
        ideal_wavefronts=total("ideal_wavefronts"),
        active_lanes=total("lanes") / total("requests") if total("requests") else 0.0,
        size=fullest["size"],
        lanes=tuple((lane, address) for lane, address in fullest["picture"]),
    )


