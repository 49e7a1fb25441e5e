"""Checks of lessons 09 and 10 on one unit each, copies in flight, banks and fragments: see checks.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from helpers.practice.asked import Launched, each
from helpers.practice.case_inputs import counted, far, normal
from helpers.practice.cases import Case, Check, Far
from helpers.practice.checks_08_11 import WIDE, transpose_cases, transpose_drawn, transpose_far, without_waste
from helpers.practice.demands import at_most

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

# -- lesson 09 ---------------------------------------------------------------------------------------------------------

TILE, IN_FLIGHT = 16, 2  # of copy_ring.cu: rows and columns of a tile; steps that must be in flight


REMARKS = {
    "c": "Where c is NaN, a tile was multiplied before its copies had arrived: which groups does wait leave in flight?",
    "in_flight": f"In a product, the copies of the next {IN_FLIGHT} steps should be in flight. What does wait leave?",
}


def tiles(m: int, n: int) -> tuple[int, int]:
    return -(-m // TILE), -(-n // TILE)


def copy_ring_result(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return a @ b, torch.full(tiles(len(a), b.shape[1]), IN_FLIGHT, dtype=torch.int32, device=a.device)


def copy_ring_cases() -> Iterator[Case]:
    sizes = (  # m, n, k; steps: none, 1, 2, 3, 4, 5, and many
        (0, 3, 2), (3, 0, 2), (3, 4, 0), (1, 1, 1), (16, 16, 16), (16, 16, 32), (16, 16, 48), (15, 17, 63),
        (17, 15, 65), (16, 16, 128), (33, 40, 100), (2, 3, 1000), (70, 50, 90), (3_000, 1, 33), (1, 3_000, 33),
        (1, 1, 33_000),
    )  # fmt: skip
    for m, n, k in sizes:
        a, b = normal(m, k), normal(k, n, seed=1)
        out = {"c": normal(m, n), "in_flight": torch.zeros(tiles(m, n), dtype=torch.int32)}
        label = f"m = {m:,}, n = {n:,}, k = {k:,}"
        # Two tiles per step, each copied by 8 warps.
        demand = at_most(16 * (k // TILE), "load", "start the copies of each step once") if m == n == TILE else None
        yield Case(label, (a, b), out, {"accumulation": max(1, k)}, remarks=REMARKS, demand=demand)


def copy_ring_drawn(size: int) -> Case:
    m, n, k = 37, size // 40, size // 50
    out = {"c": far(m, n), "in_flight": far(*tiles(m, n), dtype=torch.int32)}
    return Case(f"m = {m}, n = {n}, k = {k}", (far(m, k), far(k, n)), out, {"accumulation": k})


# -- lesson 10 ---------------------------------------------------------------------------------------------------------

TILE_BYTES = 32 * 32 * 4
SUMS = {"accumulation": 64, "dtype": torch.float32}  # tensor cores truncate sums: see terms_of_tensor_cores


def without_padding(then: Callable[[Report], str]) -> Callable[[Report], str]:
    """A demand: a block has no more shared memory than a tile needs; and what `then` asks for."""

    def look(report: Report) -> str:
        used = max((launch.shared_static + launch.shared_dynamic for launch in report.launches), default=0)
        if used > TILE_BYTES:
            return f"a block uses {used:,} bytes of shared memory, where its tile has {TILE_BYTES:,}"
        return then(report)

    return look


def swizzled_transpose_cases() -> Iterator[Case]:
    for case in transpose_cases():
        yield replace(case, demand=without_padding(without_waste)) if case.demand else case


def fragments_by_hand_cases() -> Iterator[Case]:
    one = torch.zeros(1, 16, 16).half()
    one[0, 3, 13] = 1  # row 3 of c is row 13 of b: first, since a wrong result shows which lane read what
    rows = torch.arange(128.0).view(1, 16, 8).half()
    yield Case("1 product, only a[0, 3, 13] is 1, b counts from 0", (one, rows), {"c": normal(1, 16, 8)}, SUMS)
    for count in (0, 1, 2, 3, 4, 5, 7, 33, 2_000, 257):
        a, b = normal(count, 16, 16).half(), normal(count, 16, 8, seed=1).half()
        label = counted(count, "product")
        yield Case(label, (a, b), {"c": normal(count, 16, 8)}, SUMS)


def fragments_by_hand_far(count: int) -> Case:
    half, label = torch.float16, f"{count:,} products"
    inputs = far(count, 16, 16, dtype=half), far(count, 16, 8, dtype=half)
    return Case(label, inputs, {"c": far(count, 16, 8)}, {"accumulation": 64, "edge": 256, "sure": (2, 16, 8)})


def fragments_by_hand_drawn(size: int) -> Case:
    return fragments_by_hand_far(size // 20)


CHECKS = {
    "copy_ring": Check(
        copy_ring_result,
        copy_ring_cases,
        asked=lambda a, b: [Launched(storing=len(a) * b.shape[1], tiles=len(b) > 0)] if len(a) * b.shape[1] else [],
        drawn=copy_ring_drawn,
    ),
    "swizzled_transpose": Check(
        lambda x: x.T,
        swizzled_transpose_cases,
        asked=lambda x: each(x.numel()),
        drawn=transpose_drawn,
        far=Far(transpose_far, 2**18 + 11, 1_003, 1_100, (WIDE,)),
    ),
    "fragments_by_hand": Check(
        torch.matmul,
        fragments_by_hand_cases,
        asked=lambda a, b: [Launched(storing=32 * len(a), loads=24)] if len(a) else [],
        drawn=fragments_by_hand_drawn,
        far=Far(fragments_by_hand_far, 2**28 + 5, 2**18 + 5, 2**14 + 5),
    ),
}
