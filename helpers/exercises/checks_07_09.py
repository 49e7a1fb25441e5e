"""The checks of lessons 07 and 09: see checks.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from .cases import Case, Check
from .inputs import normal

if TYPE_CHECKING:
    from helpers.xray import Report

# -- lesson 07 ---------------------------------------------------------------------------------------------------------


def rgb_to_grey_cases() -> Iterator[Case]:
    sizes = ((0, 0), (0, 5), (5, 0), (1, 1), (8, 32), (7, 31), (9, 33), (3, 100), (100, 3), (257, 129))
    for height, width in sizes:
        image = normal(3, height, width).abs()
        yield Case(f"{height} x {width}", (image,), {"grey": image[0]}, {"accumulation": 3})


def rgb_to_grey_reference(image: torch.Tensor) -> torch.Tensor:
    red, green, blue = image
    return 0.299 * red + 0.587 * green + 0.114 * blue


def without_waste(report: Report) -> str:
    """A demand: no line moves more sectors, or takes more wavefronts, than its bytes need."""
    from .traced import in_words

    return in_words(report.worst, "the result is right, but something is wasted") if report.worst else ""


def transpose_cases() -> Iterator[Case]:
    sizes = ((0, 0), (0, 5), (5, 0), (1, 1), (32, 32), (31, 33), (33, 31), (1, 100), (100, 1), (64, 64), (257, 130))
    for rows, columns in sizes:
        x = normal(rows, columns)
        demand = without_waste if rows % 32 == 0 and columns % 32 == 0 else None
        yield Case(f"{rows} x {columns}", (x,), {"out": x.T}, {"rtol": 0.0}, demand=demand)


def batched_matmul_cases() -> Iterator[Case]:
    sizes = (  # batch, m, n, k
        (0, 2, 2, 2), (2, 0, 3, 3), (2, 3, 4, 0), (1, 1, 1, 1), (1, 16, 16, 16), (2, 3, 5, 4), (3, 17, 15, 33),
        (2, 1, 40, 7), (2, 40, 1, 31), (3, 70, 50, 90),
    )  # fmt: skip
    for batch, m, n, k in sizes:
        a, b = normal(batch, m, k), normal(batch, k, n, seed=1)
        label = f"batch {batch}, m = {m}, n = {n}, k = {k}"
        yield Case(label, (a, b), {"c": normal(batch, m, n)}, {"accumulation": max(1, k)})


CHECKS = {
    "rgb_to_grey": Check(rgb_to_grey_reference, rgb_to_grey_cases),
    "transpose": Check(lambda x: x.T, transpose_cases),
    "batched_matmul": Check(torch.matmul, batched_matmul_cases),
}
