"""The checks of lesson 11. Their kernels run on compute capability 9.0 alone, and in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch

from helpers.practice.calls import Calls
from helpers.practice.case_inputs import BY, EXACT, INF, NAN, normal, roundings
from helpers.practice.cases import Case, Check
from helpers.practice.demands import RIGHT_BUT
from helpers.practice.traced_run import in_words

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

on_hopper = partial(Check, capability=(9, 0), why_not={"far": "TMA computes the addresses"})
BF16 = dict.fromkeys(("x", "out"), torch.bfloat16)
RING = Calls("x[8 * tiles, 64] -> out[8 * tiles, 64]", label="{tiles:tile}", tolerance=EXACT, dtypes=BF16)


def read_once(sectors: int) -> Callable[[Report], str]:
    """A demand: tile loads read so many sectors, and no more, and no thread loads more than its factor and one half."""

    def look(report: Report) -> str:
        read = sum(line.sectors for line in report.lines if line.kind == "tile load")
        advice = "each block requests one half, for both blocks"
        if read > sectors:
            what = f"the blocks read {read:,} sectors of x, where {sectors:,} would do"
            return f"the result is right, but {what}: {advice}"
        both = any(launch.most_loads > 2 for launch in report.launches)
        return f"the result is right, but one block requests both halves: {advice}" if both else ""

    return look


def few_conflicts(report: Report) -> str:
    """A demand: accesses to shared memory take at most half as many wavefronts again as their bytes need."""
    lines = [line for line in report.lines if line.space == "shared"]
    if 2 * sum(line.wavefronts for line in lines) <= 3 * sum(line.ideal_wavefronts for line in lines):
        return ""
    return in_words(max(lines, key=lambda line: line.wavefronts - line.ideal_wavefronts), RIGHT_BUT)


SHARED = Calls(
    "x[16 * tiles, 64], factor -> out[2, 16 * tiles, 64]",
    factor=torch.tensor([0.5, -3.0]),
    label="{tiles:tile}",
    tolerance=roundings(torch.bfloat16, 1) | {"dtype": torch.bfloat16},
    demand=lambda tiles: read_once(tiles * 16 * 64 * 2 // 32) if tiles else None,
    dtypes=BF16,
)
TURNED = Calls(
    "x[rows, columns] -> out[columns, rows]",
    label=BY,
    tolerance=EXACT,
    dtypes=BF16,
    demand=lambda rows, columns: few_conflicts,
)


def turned_tile_cases() -> Iterator[Case]:
    # A tile of which less than half is inside x would be called wasteful: those are in cases too large for an X-ray.
    yield from TURNED.at((0, 8), (64, 64), (56, 56), (64, 128), (128, 64), (72, 200), (8, 33_000), (33_000, 8))
    x = normal(72, 64).bfloat16()
    x[3, 5], x[71, 0], x[0, 63] = NAN, INF, -INF
    yield TURNED.given("72 x 64, NaN and infinities in three places", x)


CHECKS = {
    "ring_consumer": on_hopper(lambda x: 2 * x, lambda: RING.at(0, 1, 2, 3, 4, 6, 7, 20)),
    # 2,050 tiles have more rows than 16 bits count.
    "shared_tile": on_hopper(lambda x, factor: factor[:, None, None] * x, lambda: SHARED.at(0, 1, 2, 5, 2050, 9)),
    "turned_tile": on_hopper(lambda x: x.T, turned_tile_cases),
}
