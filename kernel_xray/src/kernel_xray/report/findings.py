"""Turns the tracer's findings, which are by address, into a report by line."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from kernel_xray.report import instances, symbols
from kernel_xray.report.facts import Products, Writer
from kernel_xray.report.film_data import make_film
from kernel_xray.report.report import FaultRecord, Launch, Line, Report
from kernel_xray.runtime.kernel_fault import KernelFault

Places = dict[int, symbols.Place]
_KINDS = {"illegal-access": "out-of-bounds", "wrong-mask": "divergent-barrier"}
# Over a line's accesses.
SUMS = ("requests", "sectors", "ideal_sectors", "wavefronts", "ideal_wavefronts", "received", "passes")
AS_TRACED = (  # of a launch
    *("kernel", "file", "line", "blocks", "traced_blocks", "shared_static", "shared_dynamic"),
    *("loading", "storing", "most_loads", "most_stores", "cut_blocks"),
    *("sectors_read", "sectors_written", "sectors_readable", "sms_told", "special", "most_updates", "least_read"),
)
_TENSOR_TYPES = ("float16", "bfloat16", "tf32", "float8", "int8")  # as include/simt/core.h counts them


def make_report(
    found: dict, result: Any, seed: int, error: KernelFault | None, sass: bool = False, whole: bool = True
) -> Report:
    """The report of one X-ray.

    found   the result of tracer.end; of a program also its "image", a path and a load address
    error   the fault that ended the function, if any
    sass    counts what nvcc's machine code does (corrections.py), for which the tracer was asked what-if counts; raises
            RuntimeError if nvcc or nvdisasm fails
    whole   False: the program was ended from outside
    """
    found = instances.named(found)
    if sass:
        from kernel_xray.report import corrections, issued, machine_code  # they import PyTorch's extension builder

        stacks = symbols.frames([a["pc"] for a in found["accesses"]], found.get("image"))
        found = found | {"accesses": corrections.correct(found, stacks, machine_code.of_file)}
        found["issued"] = issued.least(found, machine_code.blocks_of_file)
    addresses = [a["pc"] for a in found["accesses"]]
    addresses += [frame["pc"] for frame in found.get("frames", ())]
    addresses += [f[key] for f in found["findings"] for key in ("pc", "other_pc") if f[key]]
    frames = symbols.frames(addresses, found.get("image"))
    places = {address: stack[0][1:] for address, stack in frames.items() if stack}
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for access in found["accesses"]:
        file, line = places.get(access["pc"], ("", 0))
        groups[file, line, access["kernel"], access["space"], access["kind"]].append(access)
    launches = [_launch(entry) for entry in found["launches"]]
    cut = {launch.kernel for launch in launches if launch.cut_blocks}
    lines = [_line(key, group, key[2] not in cut, not sass) for key, group in sorted(groups.items())]
    faults, remarks = _faults(found["findings"], places, frames, launches)
    if error is not None and not faults:  # from a block that was not traced
        kind = _KINDS.get(error.kind, error.kind)
        faults.append(FaultRecord(kind, "", 0, "", (0, 0, 0), (0, 0, 0), str(error)))
    counted = machine_code.architecture() if sass else ""
    writers = [Writer(**entry) for entry in found["writers"]]
    film = make_film(found, places) if found.get("frames") else None
    return Report(
        result,
        lines,
        faults,
        launches,
        remarks,
        seed,
        writers,
        error,
        whole,
        sass=counted,
        issued=found.get("issued", []),
        recorded=film,
    )


def _line(key: tuple, group: list[dict], complete: bool, scaled: bool) -> Line:
    def total(name: str) -> int:
        return sum(access[name] for access in group)

    def waste(access: dict) -> tuple:
        lost = access["sectors"] - access["ideal_sectors"] + access["wavefronts"] - access["ideal_wavefronts"]
        return lost / max(access["requests"], 1), len(access["picture"])

    drawn = max(group, key=waste)
    made = [access for access in group if access["requests"]] or group  # by nvcc; others are part of these
    file, line, kernel, space, kind = key
    return Line(
        file=file,
        line=line,
        kernel=kernel,
        space=space,
        kind=kind,
        **{name: total(name) for name in SUMS},
        active_lanes=total("lanes") / max(total("requests"), 1),
        size=drawn["size"],
        lanes=tuple((lane, address) for lane, address in drawn["picture"]),
        **({"all_blocks": total("all_blocks"), "error": total("error")} if scaled else {}),
        complete=complete,
        nvcc="; ".join(sorted({access.get("nvcc", "") for access in made} - {""})),
    )


def _launch(entry: dict) -> Launch:
    products = zip(_TENSOR_TYPES, entry["products"], entry["least_products"], strict=True)
    return Launch(
        products=tuple(Products(*each) for each in products if each[1]),
        grid=tuple(entry["grid"]),
        block=tuple(entry["block"]),
        active_lanes=entry["lane_steps"] / entry["steps"] if entry["steps"] else 0.0,
        scale=entry["all_cost"] / entry["cost"] if entry["cost"] else 0.0,
        even=bool(entry["even"]),
        **{name: entry[name] for name in AS_TRACED},
    )


def _faults(
    findings: list[dict], places: Places, frames: dict[int, list[symbols.Frame]], launches: list[Launch]
) -> tuple[list[FaultRecord], list[FaultRecord]]:
    """The faults and the remarks, one per kind, line and kernel: the first thread, and the lines of other accesses."""
    sites = {launch.kernel: (launch.file, launch.line) for launch in launches}
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for finding in findings:
        place = (finding["file"], finding["line"]) if finding["line"] else places.get(finding["pc"])
        place = place or sites.get(finding["kernel"], ("", 0))
        if finding["kind"] == "divergent-barrier" and places.get(finding["other_pc"]) == place:
            continue  # one barrier in the source that the compiler has duplicated
        groups[finding["kind"], place, finding["kernel"], bool(finding["remark"])].append(finding)
    racing = {place for kind, place, _, remark in groups if kind == "race" and not remark}
    faults: list[FaultRecord] = []
    remarks: list[FaultRecord] = []
    for (kind, (file, line), kernel, remark), group in groups.items():
        if kind == "uninitialised-read" and (file, line) in racing:
            continue  # the race explains it: the read happened to come too early
        if remark and (kind, (file, line), kernel, False) in groups:
            continue  # a fault says more
        first = min(group, key=lambda f: (f["rank"], f["position"], f["pc"], f["other_pc"]))
        others = tuple(sorted({places[f["other_pc"]] for f in group if f["other_pc"] in places}))
        message = first["message"]
        if others:
            named = ", ".join(f"{Path(other_file).name}:{other_line}" for other_file, other_line in others)
            message += f"; the other {'place is' if len(others) == 1 else 'places are'} {named}"
        thread = tuple(first["block"]), tuple(first["thread"])
        callers = tuple(frame[1:] for frame in symbols.inside(frames.get(first["pc"], []), kernel)[1:])
        record = FaultRecord(kind, file, line, kernel, *thread, message, others, callers)
        (remarks if remark else faults).append(record)
    for records in (faults, remarks):
        records.sort(key=lambda r: (r.file, r.line, r.kind))
    return faults, remarks
