"""The checks of lesson 10: banks, fragments, and a fused epilogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import gelu

from helpers.practice.asked import Launched, each_element
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import roundings
from helpers.practice.cases import Case, Check, Far
from helpers.practice.checks.lesson_08 import FAR_MATRICES, transpose_cases, transpose_drawn
from helpers.practice.demands import whole_sectors

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

TILE_BYTES = 32 * 32 * 4


def whole_sectors_without_padding(report: Report) -> str:
    """A demand: a block has no more shared memory than a tile needs; and no line is wasteful."""
    used = max((launch.shared_static + launch.shared_dynamic for launch in report.launches), default=0)
    if used > TILE_BYTES:
        return f"a block uses {used:,} bytes of shared memory, where its tile has {TILE_BYTES:,}"
    return whole_sectors(report)


def swizzled_transpose_cases() -> Iterator[Case]:
    for case in transpose_cases():
        yield replace(case, demand=whole_sectors_without_padding) if case.demand else case


PRODUCTS = Calls(
    "a[count, 16, 16], b[count, 16, 8] -> c[count, 16, 8]",
    label="{count:product}",
    # Tensor cores truncate sums: see terms_of_tensor_cores.
    tolerance={"accumulation": 64, "dtype": torch.float32},
    dtypes=dict.fromkeys("ab", torch.float16),
)


def fragments_by_hand_cases() -> Iterator[Case]:
    one = torch.zeros(1, 16, 16).half()
    one[0, 3, 13] = 1  # row 3 of c is row 13 of b: first, since a wrong result shows which lane read what
    (first,) = PRODUCTS.at(1)
    label = "1 product, only a[0, 3, 13] is 1, b counts from 0"
    yield replace(first, label=label, inputs=(one, torch.arange(128.0).view(1, 16, 8).half()))
    yield from PRODUCTS.at(0, 1, 2, 3, 4, 5, 7, 33, 2_000, 257)


def fragments_by_hand_far(count: int) -> Case:
    return PRODUCTS.far(count, edge=256, sure=(2, 16, 8))


def reads_bias_once(n: int) -> Callable[[Report], str]:
    """A demand, where a and b are copied 16 bytes at a time: 64 reads or fewer of an element of bias.

    A tile of 128 rows has 4 warps in m, of which 8 rows of lanes each need it: 32 threads. Twice as many may.
    """

    def look(report: Report) -> str:
        narrow = [x for x in report.lines if (x.space, x.kind) == ("global", "load") and x.size <= 4]
        reads = sum(x.requests * x.active_lanes for x in narrow)
        if reads <= 64 * n:
            return ""
        return f"an element of bias is read {reads / n:.0f} times, where 32 would do: read it once for all rows"

    return look


def linears(dtype: torch.dtype) -> Calls:
    return Calls(
        "a[m, k], b[k, n], bias[n]",
        "m n k",
        dtype=dtype,
        # y is rounded once; the sums and GELU are off by less than 32 roundings of a float32 near 1.
        tolerance=roundings(dtype, 1, absolute=32),
        demand=lambda m, n, k: reads_bias_once(n) if 0 < m <= 128 and k and n % 8 == k % 8 == 0 else None,
        values={"b": lambda b: 2 * b / max(1, len(b)) ** 0.5},
    )


def matmul_bias_gelu_cases() -> Iterator[Case]:
    for dtype in (torch.float16, torch.bfloat16):
        yield from linears(dtype).at(
            (0, 3, 2), (3, 0, 2), (1, 1, 1), (2, 3, 0), (16, 8, 16), (9, 17, 5), (33, 40, 24), (130, 257, 40)
        )


def matmul_bias_gelu_far(n: int) -> Case:
    m, tolerance = 70 if n > 2**20 else 70_000, roundings(torch.float16, 1, absolute=64)
    return linears(torch.float16).far(m, n, 40, **tolerance, edge=32, sure=(4, 4))


CHECKS = {
    "swizzled_transpose": Check(
        lambda x: x.T, swizzled_transpose_cases, asked=each_element, drawn=transpose_drawn, far=FAR_MATRICES
    ),
    "fragments_by_hand": Check(
        torch.matmul,
        fragments_by_hand_cases,
        asked=lambda a, b: [Launched(storing=32 * len(a), loads=24)] if len(a) else [],
        waste=False,  # the picture gives each row's lanes 16 bytes of a
        drawn=lambda n: fragments_by_hand_far(n // 20),
        far=Far(fragments_by_hand_far, 2**28 + 5, 2**18 + 5, 2**14 + 5),
    ),
    "matmul_bias_gelu": Check(
        lambda a, b, bias: gelu(a @ b + bias, approximate="tanh"),
        matmul_bias_gelu_cases,
        asked=lambda a, b, bias: [Launched()] if len(a) * len(bias) else [],
        drawn=lambda n: list(matmul_bias_gelu_cases())[-1],
        far=Far(matmul_bias_gelu_far, 2**30 + 16, 2**20 + 16, 2**14 + 16),
    ),
}
