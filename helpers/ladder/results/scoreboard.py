"""The matmul ladder's scoreboard, from results/: each rung's speed, its share of cuBLAS, its length, what it changes.

Nothing is measured here. A rung without a record is shown as not measured yet. What limits a rung is what the X-ray's
limits say (`python -m helpers.upkeep.validation limits`): the resource that takes longest, and its share of the time.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from helpers.ladder.catalogue.matmul import LADDER, MATMUL, RUNGS
from helpers.ladder.results.plots import PEAK, PEAKS
from helpers.ladder.results.records import Recorded, ResultsError, recorded
from helpers.ladder.results.table import Table
from helpers.paths import KERNELS, RESULTS
from kernel_xray.report.canvas import INK, Picture

LIMITS = RESULTS / "limits.json"
ADDS = {kernel.name: kernel.adds for kernel in LADDER}


def lines_of_code(file: str | Path) -> int:
    """Counts the lines of a C++ file that are neither empty nor only a `//` comment."""
    lines = (KERNELS / file).read_text(encoding="utf-8").splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith("//") for line in lines)


def scoreboard(
    dtype: str = "float32",
    shape: Sequence[int] = (4096, 4096, 4096),
    found: Sequence[Recorded] | None = None,
    rungs: Sequence[str] = (),
) -> Table:
    """A row for each rung of the ladder, from the bottom up, and one for cuBLAS in the same run.

    shape   m, n, k
    found   records to use; by default those in results/
    rungs   the first and the last one to show, such as those before and after a step; by default all

    Rungs that do not take the dtype are left out; rungs without a record have no speed. Raises ValueError for a rung
    that is not in the ladder.
    """
    names = list(RUNGS)
    if unknown := [rung for rung in rungs if rung not in names]:
        raise ValueError(f"rungs={tuple(rungs)}: {unknown[0]!r} is not one of {', '.join(names)}")
    if rungs:
        names = names[names.index(rungs[0]) : names.index(rungs[-1]) + 1]
    part, records = _records(dtype, shape, recorded("matmul") if found is None else found)
    peak = PEAKS.get(part.machine["gpu"], {}).get(PEAK[dtype]) if part else None
    rows = []
    for rung in names:
        record = records.get(rung)
        if not MATMUL.takes(rung, dtype):
            continue
        speed = _speed(record, peak) if record else ["not measured yet", "", ""]
        limit = _limit(rung, dtype, shape, record)
        rows.append([rung, *speed, limit, str(lines_of_code(RUNGS[rung])), ADDS[rung]])
    compared = next((r for r in records.values() if "of_cublas" in r), None)
    if compared:
        rate = _rate(compared) / compared["of_cublas"]
        rows.append(["cublas", f"{rate:,.1f}", "100.0%", f"{rate / peak:.0%}" if peak else "", "", "", ""])
    where = part.label if part else "on a machine with a GPU: python -m helpers bench matmul --record results/GPU.json"
    title = f"matmul, {dtype}, {' x '.join(map(str, shape))}: {where}"
    header = [
        "rung",
        "TFLOP/s",
        "of cuBLAS",
        "of the peak",
        "limit (X-ray), of the time",
        "lines of code",
        "what it changes, and why",
    ]
    return Table(title, header, rows, sentences=True)


def ladder(
    dtype: str = "float32", shape: Sequence[int] = (4096, 4096, 4096), found: Sequence[Recorded] | None = None
) -> Picture:
    """The rungs as bars, from the bottom up, beside cuBLAS in the same run. Raises ResultsError if none is recorded."""
    from helpers.ladder.results.axes import axes, colours

    part, records = _records(dtype, shape, recorded("matmul") if found is None else found)
    rates = {rung: _rate(records[rung]) for rung in RUNGS if rung in records}
    if not rates or part is None:
        raise ResultsError(f"matmul is not recorded with {dtype} and {list(shape)}; see python -m helpers bench --show")
    compared = next((r for r in records.values() if "of_cublas" in r), None)
    limit = _rate(compared) / compared["of_cublas"] if compared else None
    texts = [f"{name}: {rate:.3g} TFLOP/s" for name, rate in rates.items()]
    figure = Picture(0.42 * len(rates) + 1.3, f"ladder: {dtype}, {list(shape)}, {part.label}: " + "; ".join(texts))
    ax = axes(figure, f"matmul, {dtype}, {' x '.join(map(str, shape))}, on {part.label}", grid="x")
    for y, (name, rate) in enumerate(rates.items()):
        ax.barh(y, rate, color=colours([name])[0], height=0.68, zorder=2)
        share = f"   {rate / limit:.0%}" if limit else ""
        beyond = limit if limit and 0.85 * limit < rate < limit else rate  # the line would cross the text
        ax.text(beyond, y, f"  {rate:,.1f}{share}", color=INK, va="center")
    if limit:
        ax.axvline(limit, color=INK, linewidth=1.6, zorder=1)
        ax.text(limit, len(rates) - 0.45, f"cuBLAS: {limit:,.1f} ", color=INK, ha="right", va="bottom")
    ax.set_yticks(range(len(rates)), list(rates), color=INK)
    ax.set_ylim(-0.6, len(rates) - 0.1)
    ax.set_xlim(0, 1.2 * max([*rates.values(), limit or 0]))
    ax.set_xlabel("TFLOP/s; percent: of cuBLAS of the same run", color=INK)
    return figure


def _records(dtype: str, shape: Sequence[int], found: Sequence[Recorded]) -> tuple[Recorded | None, dict[str, dict]]:
    """The first machine that has records of this dtype and shape, and these by their variant."""
    for part in found:
        fitting = {r["variant"]: r for r in part.records if r["dtype"] == dtype and r["shape"] == list(shape)}
        if fitting:
            return part, fitting
    return None, {}


@functools.cache
def _limits() -> dict[tuple, dict[str, float]]:
    """(rung, dtype, shape) -> resource -> the least seconds on the GPU that is recorded, the largest first."""
    document = json.loads(LIMITS.read_text(encoding="utf-8")) if LIMITS.exists() else {"records": []}
    return {(r["variant"], r["dtype"], tuple(r["shape"])): r["seconds"] for r in document["records"]}


def _limit(rung: str, dtype: str, shape: Sequence[int], record: Mapping | None) -> str:
    """The resource that takes longest, and how much of the recorded time; empty if either is not recorded."""
    seconds = _limits().get((rung, dtype, tuple(shape)))
    if not (seconds and record):
        return ""
    resource = next(iter(seconds))
    return f"{resource}, {seconds[resource] / record['median_ms'] * 1e3:.0%}"


def _rate(record: Mapping) -> float:
    """TFLOP/s."""
    return record["flops"] / record["median_ms"] / 1e9


def _speed(record: Mapping, peak: float | None) -> list[str]:
    share = f"{record['of_cublas']:.1%}" if "of_cublas" in record else ""
    return [f"{_rate(record):,.1f}", share, f"{_rate(record) / peak:.0%}" if peak else ""]
