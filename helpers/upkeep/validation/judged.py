"""Limits judged by ncu: how near a launch comes to its bound, and whether ncu names the same resource.

    python -m helpers.upkeep.validation judged OUT     on a GPU: each recorded call above 20 us, once, under ncu
    python -m helpers.upkeep.validation judged         anywhere: the bounds of these launches, beside what ncu said

The first writes OUT/limits_vs_ncu.json, which belongs in results/; the second completes that file. ncu's figures are
means over a launch in percent of a peak, of each resource the largest: its 'Speed of Light' with the breakdown. Caches
are cold, clocks as in use.
"""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import torch

from helpers.ladder.results.records import write_lists
from helpers.paths import RESULTS
from helpers.upkeep.benchmarks.campaign import launch_together
from helpers.upkeep.benchmarks.conditions import commit_name, machine_record
from helpers.upkeep.validation import ncu
from helpers.upkeep.validation.recorded_calls import Call, by_resource, recorded

PATH = RESULTS / "limits_vs_ncu.json"
LEAST = 20e-6  # seconds: a shorter launch is limited by its start
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
_SECONDS = 8.0  # of processor time of an X-ray


def main(arguments: Sequence[str]) -> int:
    """Measures into a folder or, without one, completes results/limits_vs_ncu.json. Returns an exit status."""
    if arguments:
        measure(Path(arguments[0]))
        return 0
    document = json.loads(PATH.read_text(encoding="utf-8"))
    gpu = document["machine"]["gpu"]
    missing = complete(document["records"], partial(bounds_of, gpu))
    write_lists(PATH, document)
    print("\n".join([*missing, table(document["records"])]))
    return 0


def measure(out: Path, seconds: float = 3600) -> None:
    """Builds the kernels, runs the calls under ncu and writes what it said. Raises ncu.NcuError."""
    out.mkdir(parents=True, exist_ok=True)
    launch_together([{"op": name, "build": True} for name in {call.operator.name for call in recorded(LEAST)}])
    log = out / "limits.csv"
    program = [sys.executable, "-m", "helpers.upkeep.validation", "launches", "--recorded"]
    command = ncu.command(log, ["."], program, METRICS, "--nvtx", "--profile-from-start", "off", cache="all")
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    records = read(log.read_text(errors="replace") if log.exists() else "")
    if not records:
        raise ncu.NcuError("ncu counted nothing:\n" + (done.stdout + done.stderr)[-2000:])
    write_lists(out / PATH.name, {"machine": machine_record(commit_name()), "records": records})


def launch_all() -> int:
    """Makes each call once, for ncu: in a range with its key."""
    for call in recorded(LEAST):
        function = call.kernel.load()[call.variant]
        tensors = call.operator.inputs(call.shape, getattr(torch, call.dtype), "cuda")
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        torch.cuda.nvtx.range_push("|".join(map(str, (*call.key[:3], *call.shape))))
        with torch.no_grad():
            function(*tensors)
            torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
        torch.cuda.profiler.stop()
    return 0


def read(text: str) -> list[dict]:
    """The record of each launch in ncu's CSV: of which call, seconds, and percent of the peak of each resource."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    records = []
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        told = re.search(r"<default domain>:([^:]*\|[^:]*):", "".join(filter(None, row.values())))
        if not told:
            continue  # the row of units
        op, variant, dtype, *shape = told[1].split("|")
        percent: dict[str, float] = {}
        for name, value in row.items():
            if name.endswith(f".avg{_OF_PEAK}") and (resource := _resource(name.partition(".")[0])):
                percent[resource] = max(percent.get(resource, 0.0), _number(value))
        call = {"op": op, "variant": variant, "dtype": dtype, "shape": [*map(int, shape)]}
        call |= {"kernel": _bare(row["Kernel Name"]), "seconds": _number(row["gpu__time_duration.sum"]) / 1e9}
        records.append(call | {"ncu": {k: round(v, 1) for k, v in _ordered(percent).items() if v >= _LITTLE}})
    return records


def _resource(metric: str) -> str:
    if "throughput" in metric:
        return ""
    return next((name for name, pattern in RESOURCES.items() if re.search(pattern, metric)), "")


def _number(text: str) -> float:
    return float(text.replace(",", "") or 0)


def _bare(kernel: str) -> str:
    """The name of a kernel without namespaces, arguments and return type."""
    return re.sub(r"^void ", "", kernel).partition("(")[0].partition("<")[0].rpartition("::")[2]


def _ordered(of: dict[str, float]) -> dict[str, float]:
    return dict(sorted(of.items(), key=lambda item: -item[1]))


def complete(records: Sequence[dict], bounds: Callable[[Call], list[tuple[str, dict[str, float]]]]) -> list[str]:
    """Adds the limits of each launch to its record, where the launches of a call are those that ncu saw.

    bounds   of a call: for each launch its kernel's name and its limits' seconds by resource

    Returns what could not be compared, in words.
    """
    missing = []
    for call in recorded():
        own = [r for r in records if (r["op"], r["variant"], r["dtype"], tuple(r["shape"])) == call.key]
        if not own:
            continue
        try:
            found = [(_bare(kernel), each) for kernel, each in bounds(call)]
        except (RuntimeError, MemoryError) as error:
            missing.append(f"{call.key}: {str(error).partition(chr(10))[0]}")
            continue
        own = [record for record in own if record["kernel"] in {kernel for kernel, _ in found}]
        if [record["kernel"] for record in own] != [kernel for kernel, _ in found]:
            missing.append(f"{call.key}: other launches under ncu")
            continue
        for record, (_, each) in zip(own, found, strict=True):
            record["bounds"] = _ordered({name: float(f"{seconds:.4g}") for name, seconds in each.items()})
    return missing


def bounds_of(gpu: str, call: Call) -> list[tuple[str, dict[str, float]]]:
    """The limits of a call's launches on a GPU, from an X-ray of a few blocks."""
    return [(each.launch.kernel, by_resource(each)) for each in call.report(gpu, _SECONDS).limits(gpu).launches]


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
        ratios, named = [ratio(r) for r in some], sum(map(agrees, some))
        lines.append(
            f"{name:<20}{len(some):>4} launches, measured / bound {statistics.median(ratios):.2f} (median), "
            f"{min(ratios):.2f} (least); limiter as ncu's in {named} ({named / len(some):.0%})"
        )
    return "\n".join(lines)
