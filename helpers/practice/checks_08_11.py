"""The checks of lessons 08 and 09: see checks.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import gelu

from helpers.practice.asked import Launched, each
from helpers.practice.case_inputs import INF, NAN, counted, far, normal, roundings, short
from helpers.practice.cases import Case, Check, Far
from helpers.practice.traced_run import in_words

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

# -- lesson 08 ---------------------------------------------------------------------------------------------------------

LONG = ((1, 33_000), (33_000, 1))  # rows and columns that 16 bits cannot count
WIDE = 2**33 + 9  # columns of a far case whose columns alone need more than 32 bits


def rgb_to_grey_cases() -> Iterator[Case]:
    sizes = ((0, 0), (0, 5), (5, 0), (1, 1), (8, 32), (7, 31), (9, 33), (3, 100), (100, 3), (257, 129))
    for height, width in (*sizes, *LONG):
        image = normal(3, height, width).abs()
        yield Case(f"{height} x {width}", (image,), {"grey": image[0]}, {"accumulation": 3})
    image = normal(3, 9, 33).abs()
    image[0, 0, 0], image[1, 4, 31], image[2, 8, 32] = NAN, NAN, INF
    yield Case("9 x 33, NaN and inf in some pixels", (image,), {"grey": image[0]}, {"accumulation": 3})


FAR_IMAGES = 2**18 + 20, 2_020, 1_988  # columns: of a long case, of a short one, of one with fewer rows


def rows_of_far_image(columns: int) -> int:
    """Rows for 8,750 blocks of 8; where 32 bits can index an image, for more than 16 bits can count."""
    return 3 if columns == WIDE else 300_004 if columns == FAR_IMAGES[1] else 70_000


def rgb_to_grey_far(width: int) -> Case:
    height, tolerance = rows_of_far_image(width), {"edge": 64, "sure": (4, 16), "accumulation": 3}
    return Case(f"{height:,} x {width:,}", (far(3, height, width),), {"grey": far(height, width)}, tolerance)


def rgb_to_grey_drawn(n: int) -> Case:
    height, width = 7, n // 7
    return Case(f"{height} x {width}", (far(3, height, width),), {"grey": far(height, width)}, {"accumulation": 3})


def without_waste(report: Report) -> str:
    """A demand: no line takes more sectors or wavefronts than its bytes need."""
    return in_words(report.worst, "the result is right, but wasteful") if report.worst else ""


def transpose_cases() -> Iterator[Case]:
    sizes = ((0, 0), (0, 5), (5, 0), (1, 1), (32, 32), (31, 33), (33, 31), (1, 100), (100, 1), (64, 64), (257, 130))
    for rows, columns in (*sizes, *LONG):
        x = normal(rows, columns)
        demand = without_waste if rows % 32 == 0 and columns % 32 == 0 else None
        yield Case(f"{rows} x {columns}", (x,), {"out": x.T.contiguous()}, {"rtol": 0.0}, demand=demand)


def transpose_drawn(n: int) -> Case:
    rows, columns = n // 40, 40
    return Case(f"{rows} x {columns}", (far(rows, columns),), {"out": far(columns, rows)}, {"rtol": 0.0})


def transpose_far(columns: int) -> Case:
    rows = 3 if columns == WIDE else 1_100_009 if columns == 1_003 else 70_009  # 1,003 columns: 34,376 blocks in y
    tolerance = {"edge": 64, "sure": (8, 8), "rtol": 0.0}
    return Case(f"{rows:,} x {columns:,}", (far(rows, columns),), {"out": far(columns, rows)}, tolerance)


def batched_matmul_cases() -> Iterator[Case]:
    sizes = (  # batch, m, n, k
        (0, 2, 2, 2), (2, 0, 3, 3), (2, 3, 4, 0), (1, 1, 1, 1), (1, 16, 16, 16), (2, 3, 5, 4), (3, 17, 15, 33),
        (2, 1, 40, 7), (2, 40, 1, 31), (3, 70, 50, 90), (1, 1, 33_000, 1), (1, 33_000, 1, 1), (1, 1, 1, 33_000),
    )  # fmt: skip
    for batch, m, n, k in sizes:
        a, b = normal(batch, m, k), normal(batch, k, n, seed=1)
        label = f"batch {batch}, m = {m:,}, n = {n:,}, k = {k:,}"
        yield Case(label, (a, b), {"c": normal(batch, m, n)}, {"accumulation": max(1, k)})


def batched_matmul_drawn(n: int) -> Case:
    batch, m, k = 2, n // 40, n // 50
    label = f"batch {batch}, m = {m}, n = 37, k = {k}"
    return Case(label, (far(batch, m, k), far(batch, k, 37)), {"c": far(batch, m, 37)}, {"accumulation": k})


def batched_matmul_asked(a: torch.Tensor, b: torch.Tensor) -> list[Launched]:
    (batch, m, k), n = a.shape, b.shape[2]
    tiles = math.prod((batch, *(-(-size // 16) for size in (m, n, k))))
    reads = 2 * tiles * 2 * 16 * 16  # twice what two tiles of 16 x 16 need for each step
    return [Launched(storing=batch * m * n // 8, reads=reads, tiles=k > 0)] if batch * m * n else []


def batched_matmul_far(n: int) -> Case:
    shapes = {WIDE: (2, 3, 5), 9: (3, 530_003, 5), 8: (3, 5_003, 5)}  # 530,003 rows: 33,126 blocks in y
    batch, m, k = shapes.get(n, (65_535, n, 300))
    tolerance = {"edge": 16 if n in shapes else 2, "sure": (1, min(m, 8), 8), "accumulation": k}
    label = f"batch {batch:,}, m = {m}, n = {n:,}, k = {k}"
    return Case(label, (far(batch, m, k), far(batch, k, n)), {"c": far(batch, m, n)}, tolerance)


# -- lesson 09 ---------------------------------------------------------------------------------------------------------


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


def register_column_cases() -> Iterator[Case]:
    sizes = (  # m, n, k
        (0, 3, 2), (3, 0, 2), (3, 4, 0), (1, 1, 1), COUNTED, (8, 64, 5), (7, 65, 4), (9, 63, 3),
        (1, 100, 17), (100, 1, 17), (131, 130, 129), (33_000, 1, 1), (1, 33_000, 1), (1, 1, 33_000),
    )  # fmt: skip
    for m, n, k in sizes:
        a, b = normal(m, k), normal(k, n, seed=1)
        demand = reads_for_a_column if (m, n, k) == COUNTED else None
        yield Case(
            f"m = {m}, n = {n}, k = {k}", (a, b), {"c": normal(m, n)}, {"accumulation": max(1, k)}, demand=demand
        )


def product_far(n: int, *more: int) -> Case:
    """c = a @ b with n columns, and further arguments; for n near 2^20, a and b have more than 2^32 elements too."""
    m, k = (3, 5) if n == WIDE else (524_277, 8200) if n > 2**20 else (70, 5)
    label, tolerance = f"m = {m:,}, n = {n:,}, k = {k:,}", {"edge": 16, "sure": (1, 8), "accumulation": k}
    return Case(label, (far(m, k), far(k, n), *more), {"c": far(m, n)}, tolerance)


def split_k_cases() -> Iterator[Case]:
    settings = (  # m, n, k, splits
        (0, 3, 2, 2), (3, 0, 2, 2), (3, 4, 0, 2), (1, 1, 1, 1), (8, 32, 64, 1), (8, 32, 64, 4), (1, 1, 5, 3),
        (2, 3, 4, 9), (9, 33, 10, 7), (7, 31, 100, 3), (40, 70, 3001, 16), (33_000, 1, 1, 1), (1, 33_000, 1, 1),
        (1, 1, 33_000, 1), (1, 1, 40_000, 33_000), (9, 34, 101, 8),
    )  # fmt: skip
    for m, n, k, splits in settings:
        a, b = normal(m, k), normal(k, n, seed=1)
        label = f"m = {m}, n = {n}, k = {k:,}, {counted(splits, 'split')}"
        yield Case(label, (a, b, splits), {"c": normal(m, n)}, {"accumulation": max(1, k)})


def split_k_asked(a: torch.Tensor, b: torch.Tensor, splits: int) -> list[Launched]:
    m, n, k = len(a), b.shape[1], len(b)
    of_a_part = Launched(storing=splits * m * n, loads=4 * -(-k // splits), atomics=False)  # twice what it needs
    return [of_a_part, Launched(storing=m * n, atomics=False)] if m * n else []


def split_k_far(n: int) -> Case:
    return product_far(n, 1)  # the other splits of the last columns do not run


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


def matmul_bias_gelu_cases() -> Iterator[Case]:
    sizes = (  # m, n, k
        (0, 3, 2), (3, 0, 2), (1, 1, 1), (2, 3, 0), (16, 8, 16), (9, 17, 5), (33, 40, 24), (130, 257, 40),
    )  # fmt: skip
    for dtype in (torch.float16, torch.bfloat16):
        for m, n, k in sizes:
            a, b = normal(m, k).to(dtype), (2 * normal(k, n, seed=1) / max(1, k) ** 0.5).to(dtype)
            label = f"{short(dtype)}, m = {m}, n = {n}, k = {k}"
            # y is rounded once; the sums and GELU are off by less than 32 roundings of a float32 near 1.
            demand = reads_bias_once(n) if 0 < m <= 128 and k and n % 8 == k % 8 == 0 else None
            yield Case(label, (a, b, normal(n, seed=2).to(dtype)), {}, roundings(dtype, 1, absolute=32), demand=demand)


def matmul_bias_gelu_far(n: int) -> Case:
    m, k = 70 if n > 2**20 else 70_000, 40
    half, tolerance = torch.float16, roundings(torch.float16, 1, absolute=64) | {"edge": 32, "sure": (4, 4)}
    label = f"float16, m = {m}, n = {n:,}, k = {k}"
    return Case(label, (far(m, k, dtype=half), far(k, n, dtype=half), far(n, dtype=half)), {}, tolerance)


CHECKS = {
    "rgb_to_grey": Check(
        lambda image: 0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2],
        rgb_to_grey_cases,
        asked=lambda image: each(image[0].numel(), 1),
        drawn=rgb_to_grey_drawn,
        far=Far(rgb_to_grey_far, *FAR_IMAGES, more=(WIDE,)),
    ),
    "transpose": Check(
        lambda x: x.T,
        transpose_cases,
        asked=lambda x: each(x.numel()),
        drawn=transpose_drawn,
        far=Far(transpose_far, 2**18 + 11, 1_003, 1_100, (WIDE,)),
    ),
    "batched_matmul": Check(
        torch.matmul,
        batched_matmul_cases,
        asked=batched_matmul_asked,
        rounds=True,
        drawn=batched_matmul_drawn,
        far=Far(batched_matmul_far, 270, 9, 8, (WIDE,)),
    ),
    "register_column": Check(
        torch.matmul,
        register_column_cases,
        asked=lambda a, b: each(-(-len(a) // 8) * b.shape[1], 1),
        rounds=True,
        far=Far(product_far, 2**20 + 9, 70_009, more=(WIDE,)),
    ),
    "split_k": Check(
        lambda a, b, splits: a @ b,
        split_k_cases,
        asked=split_k_asked,
        rounds=True,
        repeatable=True,
        far=Far(split_k_far, 2**20 + 9, 70_009, more=(WIDE,)),
    ),
    "matmul_bias_gelu": Check(
        lambda a, b, bias: gelu(a @ b + bias, approximate="tanh"),
        matmul_bias_gelu_cases,
        asked=lambda a, b, bias: [Launched()] if len(a) * len(bias) else [],
        drawn=lambda n: list(matmul_bias_gelu_cases())[-1],
        far=Far(matmul_bias_gelu_far, 2**30 + 16, 2**20 + 16, 2**14 + 16),
    ),
}
