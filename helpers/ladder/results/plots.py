"""Plots of the records in results/: share of the copy bandwidth against size, roofline, bars against peers.

Each function plots records only, names the GPU and date, and returns a matplotlib Figure. Its `repr` has the
values as text.
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from helpers.ladder import results
from helpers.ladder.results.axes import axes, colours, legend, log2_axis
from helpers.ladder.results.records import PEERS, Recorded, ResultsError
from kernel_xray.report.canvas import INK, Picture

PEER_NAMES = {"eager": "eager PyTorch", "compile": "torch.compile", "compile_dynamic": "torch.compile, dynamic shapes"}
# Dense peaks of data sheets: TFLOP/s of float32 (no tensor cores) and of bfloat16 on tensor cores.
PEAKS = {
    "NVIDIA H200": {"fp32": 67.0, "bf16 tensor cores": 989.0},
    "NVIDIA H100 80GB HBM3": {"fp32": 67.0, "bf16 tensor cores": 989.0},
    "NVIDIA A100-SXM4-80GB": {"fp32": 19.5, "bf16 tensor cores": 312.0},
    "NVIDIA L4": {"fp32": 30.3, "bf16 tensor cores": 121.0},
}
PEAK = {"float32": "fp32", "float16": "bf16 tensor cores", "bfloat16": "bf16 tensor cores"}  # of a dtype
Source = Recorded | str | os.PathLike | None


def share_of_copy(
    op: str, source: Source = None, *, dtype: str = "float32", peers: Sequence[str] = ("eager",)
) -> Picture:
    """Each variant's share of the copy bandwidth against the number of elements, beside a copy of each size.

    100% is the bandwidth of the largest copy in the same run. Raises ResultsError if `op` has no records.
    """
    found = _find(op, source, dtype, "bytes")
    shapes = sorted({tuple(r["shape"]) for r in found.records}, key=math.prod)
    by_shape = {s: [r for r in found.records if tuple(r["shape"]) == s] for s in shapes}
    roof = _copy_rate(by_shape[shapes[-1]][0])
    curves: dict[str, dict[int, float]] = {}
    for shape, records in by_shape.items():
        n = math.prod(shape)
        for r in records:
            curves.setdefault(r["variant"], {})[n] = _rate(r) / roof
        for peer in peers:
            if peer in records[0]["vs"]:
                curves.setdefault(peer, {})[n] = _rate(records[0]) / records[0]["vs"][peer] / roof
        curves.setdefault("copy", {})[n] = _copy_rate(records[0]) / roof
    ends = "; ".join(f"{name} {100 * c[max(c)]:.1f}%" for name, c in curves.items() if name != "copy")
    figure = Picture(4.4, f"share_of_copy: {op}, {dtype}, {found.label}, at the largest size: {ends}")
    ax = axes(figure, f"{op}, {dtype}, on {found.label}; 100% = {roof / 1e12:.2f} TB/s, the largest copy")
    for colour, name in zip(colours(curves), curves, strict=True):
        x = sorted(curves[name])
        style: dict[str, Any] = (
            {"linestyle": "--", "zorder": 1} if name == "copy" else {"marker": "o", "markersize": 4.5}
        )
        label = "copy of the same size" if name == "copy" else PEER_NAMES.get(name, name)
        ax.plot(x, [100 * curves[name][n] for n in x], color=colour, linewidth=2, label=label, **style)
    ax.axhline(100, color=INK, linewidth=1, zorder=0)
    log2_axis(ax, [math.prod(s) for s in shapes])
    ax.set_ylim(0, 10 * math.ceil(10 * max(1.0, *(v for c in curves.values() for v in c.values())) + 0.5))
    ax.set_xlabel("elements", color=INK)
    ax.set_ylabel("% of copy bandwidth", color=INK)
    legend(ax, loc="lower right" if len(shapes) > 2 else "best")
    return figure


def bars(op: str, source: Source = None, *, dtype: str = "float32", shape: Sequence[int] | None = None) -> Picture:
    """Our variants, their peers and the copy as bars, at one shape (the largest by default).

    The axis is GB/s if bytes are the limit, TFLOP/s otherwise. Raises ResultsError if there is no such record.
    """
    found = _find(op, source, dtype)
    shape = list(shape) if shape is not None else max((r["shape"] for r in found.records), key=math.prod)
    records = sorted((r for r in found.records if r["shape"] == shape), key=lambda r: r["median_ms"])
    if not records:
        raise ResultsError(f"{op} was not recorded at {shape}; there are {_shapes(found.records)}")
    first, scale, unit = records[0], *((1e9, "GB/s") if "bytes" in records[0] else (1e12, "TFLOP/s"))
    heights = {r["variant"]: _rate(r) / scale for r in records}
    spread = {r["variant"]: (r["median_ms"] / r["p80_ms"], r["median_ms"] / r["p20_ms"]) for r in records}
    heights |= {p: heights[first["variant"]] / first["vs"][p] for p in PEERS if p in first["vs"]}
    if "of_copy" in first:
        heights["copy"] = _copy_rate(first) / scale
    limit = heights.get("copy") or heights.get("cublas") or heights.get("cudnn")
    texts = [f"{n}: {h:,.4g} {unit}" for n, h in heights.items()]
    figure = Picture(0.42 * len(heights) + 1.3, f"bars: {op}, {dtype}, {shape}, {found.label}: " + "; ".join(texts))
    ax = axes(figure, f"{op}, {dtype}, {_size(shape)}, on {found.label}", grid="x")
    for y, (colour, (name, height)) in enumerate(zip(colours(heights), heights.items(), strict=True)):
        ax.barh(y, height, color=colour, height=0.68, zorder=2)
        low, high = (height * factor for factor in spread.get(name, (1, 1)))
        ax.plot([low, high], [y, y], color=INK, linewidth=1.6, zorder=3)
        share = f"   {100 * height / limit:.1f}%" if limit else ""
        ax.text(high, y, f"  {height:,.{0 if height >= 100 else 1}f}{share}", color=INK, va="center")
    ax.set_yticks(range(len(heights)), [PEER_NAMES.get(n, n) for n in heights], color=INK)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.25 * max(heights.values()))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    of = {"GB/s": "copy", "TFLOP/s": "cuBLAS"}[unit]
    what = f"{unit} of the bytes that must be moved" if unit == "GB/s" else unit
    ax.set_xlabel(what + (f"; percent: of the {of} of the same run" if limit else ""), color=INK)
    return figure


def roofline(
    ops: Sequence[str] | None = None,
    source: Source = None,
    *,
    dtype: str = "float32",
    compute: Mapping[str, float] | None = None,
) -> Picture:
    """Operators between the two roofs of a GPU: FLOP per byte to the right, TFLOP/s upwards, both logarithmic.

    ops      by default all with records in this dtype; each at its largest shape, with its fastest variant
    compute  the GPU's peaks in TFLOP/s, by name; by default its data sheet's, for the GPUs in PEAKS

    The memory's roof is the copy bandwidth in the same run. Shares are of the memory's roof, or of the dtype's peak if
    that is lower. Raises ResultsError without records or peaks.
    """
    from helpers.ladder.catalogue import OPERATORS

    every = _find(None, source, dtype)
    names = [o for o in (ops or dict.fromkeys(r["op"] for r in every.records)) if o in OPERATORS]
    points = {}
    for name in names:
        of_op = [r for r in every.records if r["op"] == name]
        if not of_op:
            raise ResultsError(
                f"{name} is not recorded with {dtype}; recorded are {', '.join({r['op'] for r in every.records})}"
            )
        best = max(of_op, key=lambda r: (math.prod(r["shape"]), -r["median_ms"]))
        shape = tuple(best["shape"])
        size = {"float64": 8, "float32": 4}.get(dtype, 2)
        flops = OPERATORS[name].flops(shape)
        points[name] = (flops / OPERATORS[name].bytes(shape, size), flops / best["median_ms"] / 1e9)
    compute = dict(compute or PEAKS.get(every.machine["gpu"], {}))
    if not compute:
        raise ResultsError(f"the peaks of {every.machine['gpu']} are not known: give compute={{'fp32': TFLOP/s}}")
    bandwidth = copy_bandwidth(every.records)
    left = min([0.05, *(x / 2 for x, _ in points.values())])
    right = 4 * max([max(compute.values()) / bandwidth, *(x for x, _ in points.values())])
    texts = [f"{n}: {x:.3g} FLOP/byte, {y:.3g} TFLOP/s" for n, (x, y) in points.items()]
    figure = Picture(4.8, f"roofline: {dtype}, {every.label}: {'; '.join(texts)}")
    ax = axes(figure, f"roofline of {every.label}; {dtype} operators at their largest recorded size", grid="both")
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(0.6 * left * bandwidth, 2.6 * max(compute.values())))
    draw_roofs(ax, bandwidth, compute, left, right)
    top = max(compute.values())
    for place, (colour, (name, (x, y))) in enumerate(zip(colours(points), points.items(), strict=True)):
        share = 100 * y / min(x * bandwidth, compute.get(PEAK.get(dtype, ""), top))
        ring = 8 + 4.5 * (len(points) - 1 - place)  # coinciding points show as rings
        label = f"{name}: {y:.2g} TFLOP/s, {share:.0f}% of the roof"
        ax.plot(x, y, "o", color=colour, markersize=ring, zorder=3, linestyle="none", label=label)
    ax.set_xlabel("FLOP per byte moved", color=INK)
    ax.set_ylabel("TFLOP/s", color=INK)
    legend(ax, loc="lower right")
    return figure


def draw_roofs(ax: Axes, bandwidth: float, compute: Mapping[str, float], left: float, right: float) -> None:
    """The two roofs: a slope of `bandwidth` TB/s, and levels in TFLOP/s, from `left` to `right` FLOP per byte."""
    top = max(compute.values())
    ax.plot([left, top / bandwidth], [left * bandwidth, top], color=INK, linewidth=2, zorder=1)
    for name, peak in compute.items():
        ax.plot([peak / bandwidth, right], [peak, peak], color=INK, linewidth=2, zorder=1)
        ax.text(
            right / 1.15, peak * 1.1, f"{name}, data sheet: {peak:,.0f} TFLOP/s", color=INK, ha="right", va="bottom"
        )
    middle = math.sqrt(left * min(compute.values()) / bandwidth)
    along: dict[str, Any] = {
        "rotation": math.degrees(math.atan(bandwidth)),
        "transform_rotates_text": True,
        "rotation_mode": "anchor",
    }
    ax.text(middle, 1.18 * middle * bandwidth, f"copy: {bandwidth:.2f} TB/s", color=INK, ha="center", **along)


def copy_bandwidth(records: Sequence[Mapping]) -> float:
    """The fastest recorded copy in TB/s, which is TFLOP/s for each FLOP per byte. Raises ResultsError without one."""
    rates = [_copy_rate(r) for r in records if "of_copy" in r]
    if not rates:
        raise ResultsError("no record carries of_copy, so the memory's roof is not known")
    return max(rates) / 1e12


# -- records -----------------------------------------------------------------------------------------------------------


def _find(op: str | None, source: Source, dtype: str, amount: str | None = None) -> Recorded:
    """The records to plot: from the first file in results/, in alphabetical order, that has such records."""
    if isinstance(source, Recorded):
        candidates = [source]
    elif source is None:
        candidates = results.recorded(op)
    else:
        document = results.read(source)
        candidates = [Recorded(Path(source), document["machine"], document["records"])]
    for c in candidates:
        fitting = [
            r for r in c.records if op in (None, r["op"]) and r["dtype"] == dtype and (not amount or amount in r)
        ]
        if fitting:
            return Recorded(c.path, c.machine, fitting)
    raise ResultsError(
        f"nothing is recorded for {op or 'any operator'} with {dtype}; see python -m helpers bench --show"
    )


def _rate(record: Mapping) -> float:
    """Bytes or FLOP per second."""
    return record.get("bytes", record.get("flops")) / record["median_ms"] * 1e3


def _copy_rate(record: Mapping) -> float:
    return _rate(record) / record["of_copy"]


def _size(shape: Sequence[int]) -> str:
    return f"{shape[0]:,} elements" if len(shape) == 1 else " x ".join(f"{n:,}" for n in shape)


def _shapes(records: Sequence[Mapping]) -> str:
    return ", ".join(str(s) for s in sorted({tuple(r["shape"]) for r in records}, key=math.prod))
