"""The checks of lesson 08: images and matrices, in two dimensions and by tiles."""

import math
from collections.abc import Iterator

import torch

from helpers.practice.asked import Launched, each, each_element
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import BY, EXACT, INF, NAN, WIDE, normal
from helpers.practice.cases import Case, Check, Far
from helpers.practice.demands import whole_sectors

LONG = ((1, 33_000), (33_000, 1))  # rows and columns that 16 bits cannot count
FAR_IMAGES = 2**18 + 20, 2_020, 1_988  # columns: of a long case, of a short one, of one with fewer rows


def rows_of_far_image(columns: int) -> int:
    """Rows for 8,750 blocks of 8; where 32 bits can index an image, for more than 16 bits can count."""
    return 3 if columns == WIDE else 300_004 if columns == FAR_IMAGES[1] else 70_000


GREY = Calls("image[3, rows, columns] -> grey[rows, columns]", label=BY, sums="3", values={"image": torch.abs})


def rgb_to_grey_cases() -> Iterator[Case]:
    yield from GREY.at((0, 0), (0, 5), (5, 0), (1, 1), (8, 32), (7, 31), (9, 33), (3, 100), (100, 3), (257, 129), *LONG)
    image = normal(3, 9, 33).abs()
    image[0, 0, 0], image[1, 4, 31], image[2, 8, 32] = NAN, NAN, INF
    yield GREY.given("9 x 33, NaN and inf in some pixels", image)


PADDED = Calls(
    "x[rows, columns], border -> out[rows + 2 * border, columns + 2 * border]",
    label=f"{BY}, border {{border}}",
    tolerance=EXACT,
)
TRANSPOSED = Calls(
    "x[rows, columns] -> out[columns, rows]",
    label=BY,
    tolerance=EXACT,
    demand=lambda rows, columns: whole_sectors if rows % 32 == 0 and columns % 32 == 0 else None,
)


def transpose_cases() -> Iterator[Case]:
    return TRANSPOSED.at(
        (0, 0), (0, 5), (5, 0), (1, 1), (32, 32), (31, 33), (33, 31), (1, 100), (100, 1), (64, 64), (257, 130), *LONG
    )


def transpose_drawn(n: int) -> Case:
    return TRANSPOSED.far(n // 40, 40)


def transpose_far(columns: int) -> Case:
    rows = 3 if columns == WIDE else 1_100_009 if columns == 1_003 else 70_009  # 1,003 columns: 34,376 blocks in y
    return TRANSPOSED.far(rows, columns, edge=64, sure=(8, 8))


FAR_MATRICES = Far(transpose_far, 2**18 + 11, 1_003, 1_100, (WIDE,))

BATCHES = Calls(
    "a[batch, m, k], b[batch, k, n] -> c[batch, m, n]",
    "batch m n k",
    label="batch {batch:,}, m = {m:,}, n = {n:,}, k = {k:,}",
    sums="k",
)


def batched_matmul_asked(a: torch.Tensor, b: torch.Tensor) -> list[Launched]:
    (batch, m, k), n = a.shape, b.shape[2]
    tiles = math.prod((batch, *(-(-size // 16) for size in (m, n, k))))
    reads = 2 * tiles * 2 * 16 * 16  # twice what two tiles of 16 x 16 need for each step
    return [Launched(storing=batch * m * n // 8, reads=reads, tiles=k > 0)] if batch * m * n else []


def batched_matmul_far(n: int) -> Case:
    shapes = {WIDE: (2, 3, 5), 9: (3, 530_003, 5), 8: (3, 5_003, 5)}  # 530,003 rows: 33,126 blocks in y
    batch, m, k = shapes.get(n, (65_535, n, 300))
    return BATCHES.far(batch, m, n, k, edge=16 if n in shapes else 2, sure=(1, min(m, 8), 8))


CHECKS = {
    "rgb_to_grey": Check(
        lambda image: 0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2],
        rgb_to_grey_cases,
        asked=lambda image: each(image[0].numel(), 1),
        drawn=lambda n: GREY.far(7, n // 7),
        far=Far(
            lambda columns: GREY.far(rows_of_far_image(columns), columns, edge=64, sure=(4, 16)),
            *FAR_IMAGES,
            more=(WIDE,),
        ),
    ),
    "pad_border": Check(
        lambda x, border: torch.nn.functional.pad(x, (border,) * 4),
        lambda: PADDED.at(
            (0, 0, 0), (0, 5, 0), (0, 0, 2), (0, 3, 1), (1, 1, 0), (1, 1, 1), (8, 32, 0), (6, 30, 1), (7, 31, 3),
            (3, 100, 2), (100, 3, 5), (33_000, 1, 1), (1, 33_000, 1), (1, 1, 40),
        ),
        drawn=lambda n: PADDED.far(7, n // 7, 3),
        far=Far(  # without a border, so that the ends of the result are those of x
            lambda columns: PADDED.far(rows_of_far_image(columns), columns, 0, edge=64, sure=(4, 16)),
            *FAR_IMAGES,
            more=(WIDE,),
        ),
    ),
    "transpose": Check(
        lambda x: x.T, transpose_cases, asked=each_element, drawn=transpose_drawn, far=FAR_MATRICES
    ),
    "batched_matmul": Check(
        torch.matmul,
        lambda: BATCHES.at(
            (0, 2, 2, 2), (2, 0, 3, 3), (2, 3, 4, 0), (1, 1, 1, 1), (1, 16, 16, 16), (2, 3, 5, 4), (3, 17, 15, 33),
            (2, 1, 40, 7), (2, 40, 1, 31), (3, 70, 50, 90), (1, 1, 33_000, 1), (1, 33_000, 1, 1), (1, 1, 1, 33_000),
        ),
        asked=batched_matmul_asked,
        rounds=True,
        drawn=lambda n: BATCHES.far(2, n // 40, 37, n // 50),
        far=Far(batched_matmul_far, 270, 9, 8, (WIDE,)),
    ),
}  # fmt: skip
