"""Limits judged by ncu: how near a launch comes to its bound, and whether ncu names the same resource.

judged_calls.py makes the launches and X-rays them; this module reads and compares. ncu's figures are means over a
launch in percent of a peak, of each resource the largest: its 'Speed of Light' with the breakdown. Caches are cold,
clocks as in use.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence

from helpers.paths import RESULTS
from helpers.upkeep.validation import ncu

PATH = RESULTS / "limits_vs_ncu.json"
LEAST = 20e-6  # seconds: a shorter launch is limited by its start
Key = tuple[str, str, str, tuple[int, ...]]  # operator, variant, dtype and shape of a call
HIGH = 80.0  # percent of a peak: such a launch is near a limit
_OF_PEAK = ".pct_of_peak_sustained_elapsed"
_SHARES = [f"breakdown:{part}.avg{_OF_PEAK}" for part in ("sm__throughput", "gpu__compute_memory_throughput")]
METRICS = ("gpu__time_duration.sum", f"dram__cycles_active.avg{_OF_PEAK}", *_SHARES)
# ncu's names of what a resource of `report.limits` is: the first pattern that is found.
RESOURCES = {
    "DRAM": r"dram__|fbpa__",
    "L2": r"lts__|l1tex__m_",
    "tensor": r"sm__pipe_shared|sm__pipe_tensor",
    "L1 and shared memory": r"l1tex__|pipe_lsu|sm__mio",
    "issue": r"sm__inst_executed$|sm__issue",
    "float32 arithmetic": r"sm__pipe_fma",
    "integer arithmetic": r"sm__pipe_alu",
    "special functions": r"pipe_xu",
    "float64 arithmetic": r"sm__pipe_fp64",
    "other units": r"sm__|idc__",
}
_LITTLE = 0.1  # percent: less is left out


def read(text: str) -> list[dict]:
    """The record of each launch in ncu's CSV: of which call, seconds, and percent of the peak of each resource."""
    records = []
    for row in ncu.rows(text):
        told = re.search(r"<default domain>:([^:]*\|[^:]*):", "".join(row.values()))
        if not told:
            continue  # not of a call
        op, variant, dtype, *shape = told[1].split("|")
        percent: dict[str, float] = {}
        for name, value in row.items():
            if name.endswith(f".avg{_OF_PEAK}") and (resource := _resource(name.partition(".")[0])):
                percent[resource] = max(percent.get(resource, 0.0), ncu.number(value) or 0.0)
        call = {"op": op, "variant": variant, "dtype": dtype, "shape": [*map(int, shape)]}
        call |= {
            "kernel": _bare(row["Kernel Name"]),
            "seconds": (ncu.number(row["gpu__time_duration.sum"]) or 0.0) / 1e9,
        }
        records.append(call | {"ncu": {k: round(v, 1) for k, v in _ordered(percent).items() if v >= _LITTLE}})
    return records


def _resource(metric: str) -> str:
    if "throughput" in metric:
        return ""
    return next((name for name, pattern in RESOURCES.items() if re.search(pattern, metric)), "")


def _bare(kernel: str) -> str:
    """The name of a kernel without namespaces, arguments and return type."""
    return re.sub(r"^void ", "", kernel).partition("(")[0].partition("<")[0].rpartition("::")[2]


def _ordered(of: dict[str, float]) -> dict[str, float]:
    return dict(sorted(of.items(), key=lambda item: -item[1]))


def key_of(record: dict) -> Key:
    """Of which call a record's launch is."""
    return record["op"], record["variant"], record["dtype"], tuple(record["shape"])


def complete(records: Iterable[dict], key: Key, bounds: Sequence[tuple[str, dict[str, float]]]) -> str:
    """Adds the limits of a call's launches to their records, if these are the launches that ncu saw.

    bounds   for each launch its kernel's name and its limits' seconds by resource

    Returns "", or why they cannot be compared.
    """
    found = [(_bare(kernel), each) for kernel, each in bounds]
    own = [r for r in records if key_of(r) == key and r["kernel"] in {kernel for kernel, _ in found}]
    if [record["kernel"] for record in own] != [kernel for kernel, _ in found]:
        return "other launches under ncu"
    for record, (_, each) in zip(own, found, strict=True):
        record["bounds"] = _ordered({name: float(f"{seconds:.4g}") for name, seconds in each.items()})
    return ""


def compared(records: Iterable[dict]) -> list[dict]:
    """The records of launches that take LEAST or longer and have limits."""
    return [record for record in records if record.get("bounds") and record["seconds"] >= LEAST]


def near_a_peak(records: Iterable[dict]) -> list[dict]:
    return [record for record in compared(records) if max(record["ncu"].values()) >= HIGH]


def ratio(record: dict) -> float:
    """The measured time over the bound."""
    return record["seconds"] / max(record["bounds"].values())


def agrees(record: dict) -> bool:
    """Whether the limiter, of the resources that ncu counts too, is the one that ncu calls highest.

    It has no share for the start of blocks, for waves and for atomics on one word.
    """
    known = {name: seconds for name, seconds in record["bounds"].items() if name.partition(",")[0] in RESOURCES}
    mine = max(known, key=lambda name: known[name]).partition(",")[0]
    return record["ncu"].get(mine) == max(record["ncu"].values())


def table(records: Sequence[dict]) -> str:
    """How useful the bounds are, as text."""
    lines = []
    for name, some in (("20 us or longer", compared(records)), ("at 80% of a peak", near_a_peak(records))):
        if not some:
            continue
        ratios, named = [ratio(r) for r in some], sum(map(agrees, some))
        lines.append(
            f"{name:<20}{len(some):>4} launches, measured / bound {statistics.median(ratios):.2f} (median), "
            f"{min(ratios):.2f} (least); limiter as ncu's in {named} ({named / len(some):.0%})"
        )
    return "\n".join(lines)
