"""The checks of lesson 11: see checks.py. Their kernels run on compute capability 9.0 alone, and in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch

from helpers.practice.case_inputs import INF, NAN, counted, normal, roundings
from helpers.practice.cases import Case, Check

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

HOPPER = (9, 0)
EXACT = {"rtol": 0.0}
TO_BFLOAT16 = roundings(torch.bfloat16, 1) | {"dtype": torch.bfloat16}
on_hopper = partial(Check, capability=HOPPER)


def matrix(rows: int, columns: int) -> torch.Tensor:
    return normal(rows, columns).bfloat16()


def ring_consumer_cases() -> Iterator[Case]:
    for tiles in (0, 1, 2, 3, 4, 6, 7, 20):
        x = matrix(8 * tiles, 64)
        yield Case(counted(tiles, "tile"), (x,), {"out": x}, EXACT)


def read_once(sectors: int) -> Callable[[Report], str]:
    """A demand: tile loads read so many sectors, and no more."""

    def look(report: Report) -> str:
        read = sum(line.sectors for line in report.lines if line.kind == "tile load")
        if read <= sectors:
            return ""
        return (
            f"the result is right, but the blocks read {read:,} sectors of x, where {sectors:,} would do: each block "
            "requests one half, for both blocks"
        )

    return look


def shared_tile_cases() -> Iterator[Case]:
    factor = torch.tensor([0.5, -3.0])
    for tiles in (0, 1, 2, 5, 2050, 9):  # 2,050 tiles have more rows than 16 bits count
        x = matrix(16 * tiles, 64)
        demand = read_once(x.numel() * 2 // 32) if tiles else None
        like = normal(2, 16 * tiles, 64).bfloat16()
        yield Case(counted(tiles, "tile"), (x, factor), {"out": like}, TO_BFLOAT16, demand=demand)


def turned_tile_cases() -> Iterator[Case]:
    # A tile of which less than half is inside x would be called wasteful: those are in cases too large for an X-ray.
    for rows, columns in ((0, 8), (64, 64), (56, 56), (64, 128), (128, 64), (72, 200), (8, 33_000), (33_000, 8)):
        x = matrix(rows, columns)
        yield Case(f"{rows} x {columns}", (x,), {"out": x.T.contiguous()}, EXACT)
    x = matrix(72, 64)
    x[3, 5], x[71, 0], x[0, 63] = NAN, INF, -INF
    yield Case("72 x 64, NaN and infinities in three places", (x,), {"out": x.T.contiguous()}, EXACT)


CHECKS = {
    "ring_consumer": on_hopper(lambda x: 2 * x, ring_consumer_cases),
    "shared_tile": on_hopper(lambda x, factor: factor[:, None, None] * x, shared_tile_cases),
    "turned_tile": on_hopper(lambda x: x.T, turned_tile_cases),
}
