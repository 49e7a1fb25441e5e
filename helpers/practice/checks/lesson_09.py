"""The checks of lesson 09: products from registers, in parts, and with copies in flight."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from helpers.practice.asked import Launched, each
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import WIDE
from helpers.practice.cases import Case, Check, Far
from helpers.practice.demands import at_most

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

COUNTED = (16, 64, 8)  # m, n and k of the case whose reads are counted


def reads_for_a_column(report: Report) -> str:
    """A demand: at most 9 reads of global memory per 8 products, which is what a column of 8 needs."""
    reads = sum(line.requests for line in report.lines if (line.space, line.kind) == ("global", "load"))
    per_product = reads / (math.prod(COUNTED) / 32)  # a warp computes 32 products at once
    if per_product <= 9 / 8:
        return ""
    return (
        f"the result is right, but a warp reads {per_product:.3g} times per product, where 9 / 8 would do: read "
        "each element of b once, and keep it and the 8 sums in local variables"
    )


PRODUCT = Calls(
    "a[m, k], b[k, n] -> c[m, n]",
    "m n k",
    sums="k",
    demand=lambda m, n, k: reads_for_a_column if (m, n, k) == COUNTED else None,
)
PARTS = Calls(
    "a[m, k], b[k, n], splits -> c[m, n]",
    "m n k splits",
    label="m = {m:,}, n = {n:,}, k = {k:,}, {splits:split}",
    sums="k",
)


def far_product(calls: Calls, *more: int) -> Far:
    """c = a @ b with n columns, and further arguments; for n near 2^20, a and b have more than 2^32 elements too."""

    def case(n: int) -> Case:
        m, k = (3, 5) if n == WIDE else (524_277, 8200) if n > 2**20 else (70, 5)
        return calls.far(m, n, k, *more, edge=16, sure=(1, 8))

    return Far(case, 2**20 + 9, 70_009, more=(WIDE,))


def split_k_asked(a: torch.Tensor, b: torch.Tensor, splits: int) -> list[Launched]:
    m, n, k = len(a), b.shape[1], len(b)
    of_a_part = Launched(storing=splits * m * n, loads=4 * -(-k // splits), atomics=False)  # twice what it needs
    return [of_a_part, Launched(storing=m * n, atomics=False)] if m * n else []


TILE, IN_FLIGHT = 16, 2  # of copy_ring.cu: rows and columns of a tile; steps that must be in flight
REMARKS = {
    "c": "Where c is NaN, a tile was multiplied before its copies had arrived: which groups does wait leave in flight?",
    "in_flight": f"In a product, the copies of the next {IN_FLIGHT} steps should be in flight. What does wait leave?",
}


RING = Calls(
    "a[m, k], b[k, n] -> c[m, n], in_flight[-(-m // 16), -(-n // 16)]",
    "m n k",
    sums="k",
    # Two tiles per step, each copied by 8 warps.
    demand=lambda m, n, k: at_most(k, "load", "start the copies of each step once") if m == n == TILE else None,
    dtypes={"in_flight": torch.int32},
)


def copy_ring_cases() -> Iterator[Case]:
    sizes = (  # steps: none, 1, 2, 3, 4, 5, and many
        (0, 3, 2), (3, 0, 2), (3, 4, 0), (1, 1, 1), (16, 16, 16), (16, 16, 32), (16, 16, 48), (15, 17, 63),
        (17, 15, 65), (16, 16, 128), (33, 40, 100), (2, 3, 1000), (70, 50, 90), (3_000, 1, 33), (1, 3_000, 33),
        (1, 1, 33_000),
    )  # fmt: skip
    return (replace(case, remarks=REMARKS) for case in RING.at(*sizes))


def copy_ring_result(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    tiles = -(-len(a) // TILE), -(-b.shape[1] // TILE)
    return a @ b, torch.full(tiles, IN_FLIGHT, dtype=torch.int32, device=a.device)


CHECKS = {
    "register_column": Check(
        torch.matmul,
        lambda: PRODUCT.at(
            (0, 3, 2), (3, 0, 2), (3, 4, 0), (1, 1, 1), COUNTED, (8, 64, 5), (7, 65, 4), (9, 63, 3), (1, 100, 17),
            (100, 1, 17), (131, 130, 129), (33_000, 1, 1), (1, 33_000, 1), (1, 1, 33_000),
        ),
        asked=lambda a, b: each(-(-len(a) // 8) * b.shape[1], 1),
        rounds=True,
        far=far_product(PRODUCT),
    ),
    "split_k": Check(
        lambda a, b, splits: a @ b,
        lambda: PARTS.at(
            (0, 3, 2, 2), (3, 0, 2, 2), (3, 4, 0, 2), (1, 1, 1, 1), (8, 32, 64, 1), (8, 32, 64, 4), (1, 1, 5, 3),
            (2, 3, 4, 9), (9, 33, 10, 7), (7, 31, 100, 3), (40, 70, 3001, 16), (33_000, 1, 1, 1), (1, 33_000, 1, 1),
            (1, 1, 33_000, 1), (1, 1, 40_000, 33_000), (9, 34, 101, 8),
        ),
        asked=split_k_asked,
        rounds=True,
        repeatable=True,
        far=far_product(PARTS, 1),  # the other splits of the last columns do not run
    ),
    "copy_ring": Check(
        copy_ring_result,
        copy_ring_cases,
        asked=lambda a, b: [Launched(storing=len(a) * b.shape[1], tiles=len(b) > 0)] if len(a) * b.shape[1] else [],
        drawn=lambda n: RING.far(37, n // 40, n // 50),
        why_not={"far": "its indices are in the code that is given"},
    ),
}  # fmt: skip
