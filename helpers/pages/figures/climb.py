"""The figure 'Where the bytes go': the matmul ladder as nested tiles, with bytes per FLOP and the recorded speed."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from helpers.ladder import results
from helpers.ladder.results.axes import axes, colours
from helpers.ladder.results.plots import PEAK, PEAKS, copy_bandwidth, draw_roofs
from helpers.pages.figures.rungs import SIZE, Rung, rungs
from kernel_xray.report.canvas import INK, Picture
from kernel_xray.report.shell import Page, assembled

_HERE = Path(__file__).parent
_SHAPE = (SIZE,) * 3


def where_bytes_go() -> Page:
    """The matmul ladder as a figure: a slider over the rungs, their tiles, bytes per FLOP, and the recorded speed.

    A notebook shows it; `where_bytes_go().save("bytes.html")` writes it as one file. Sizes come from the kernels,
    speeds from results/. Raises ResultsError if nothing is recorded for matmul.
    """
    data = climb()
    return Page(assembled("Where the bytes go", _HERE, "climb", data), "where_bytes_go figure", 900, still(data))


def climb() -> dict[str, Any]:
    """What the page gets: the rungs, each with its record if there is one, and the roofs of their machine."""
    found = next(iter(results.recorded("matmul")), None)
    if found is None:
        raise results.ResultsError("matmul is not recorded: python -m helpers bench matmul --record results/GPU.json")
    every = next(part for part in results.recorded() if part.path == found.path)
    copies = [record for record in every.records if record["dtype"] == "float32"]
    return {
        "size": SIZE,
        "machine": found.label,
        "bandwidth": copy_bandwidth(copies),
        "peaks": PEAKS.get(found.machine["gpu"], {}),  # of data sheets
        "rungs": [_packed(rung) for rung in rungs()],
    }


def _packed(rung: Rung) -> dict[str, Any]:
    record = results.find("matmul", rung.name, dtype=rung.dtype, shape=_SHAPE)
    size = {"float32": 4}.get(rung.dtype, 2)
    return asdict(rung) | {
        "adds": rung.adds,
        "peak": PEAK[rung.dtype],
        "size": size,
        "least": 3 * size / (2 * SIZE),  # bytes per FLOP if each element of a, b and c moved once
        "tflops": record and record["flops"] / record["median_ms"] / 1e9,
        "of_cublas": record and record["of_cublas"],
    }


def still(data: dict[str, Any]) -> Picture:
    """The rungs on the roofline, for where the page's script is not run."""
    shown = [rung for rung in data["rungs"] if rung["tflops"]]
    texts = [
        f"{Path(r['file']).stem}: {r['from_global']:.3g} bytes per FLOP from global memory, {r['from_shared']:.3g} "
        f"from shared memory, {r['tflops']:.3g} TFLOP/s"
        for r in shown
    ]
    title = f"the matmul ladder, {SIZE} x {SIZE} x {SIZE}, on {data['machine']}"
    picture = Picture(4.6, f"{title}: {'; '.join(texts)}")
    ax = axes(picture, title, grid="both")
    left, right, top = 0.05, 2000.0, max(data["peaks"].values(), default=1000.0)
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(0.6 * left * data["bandwidth"], 2.6 * top))
    draw_roofs(ax, data["bandwidth"], data["peaks"] or {"": top}, left, right)
    for colour, rung in zip(colours([r["name"] for r in shown]), shown, strict=True):
        x, number = 1 / rung["from_global"], Path(rung["file"]).stem.partition("_")[0]
        side, align = (
            (1.12, "left") if int(number) % 2 == (x < 1) else (1 / 1.12, "right")
        )  # dots may lie close together
        ax.plot(x, rung["tflops"], "o", color=colour, markersize=8, zorder=3)
        ax.text(side * x, rung["tflops"], number, color=INK, ha=align, va="center", zorder=4)
    ax.set_xlabel("FLOP per byte that blocks load from global memory", color=INK)
    ax.set_ylabel("TFLOP/s", color=INK)
    return picture
