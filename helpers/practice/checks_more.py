"""Checks of further exercises of lessons 01 to 08: see checks.py."""

from collections.abc import Iterator

import torch

from helpers.practice.case_inputs import INF, LEAST, NAN, SIZES, counted, far, normal, roundings
from helpers.practice.cases import Case, Check, Far
from helpers.practice.checks_04_06 import at_once
from helpers.practice.checks_08_11 import FAR_IMAGES, WIDE, rows_of_far_image
from helpers.practice.demands import whole_sectors

EXACT = {"rtol": 0.0}

# -- lesson 01 ---------------------------------------------------------------------------------------------------------


def saxpy_cases() -> Iterator[Case]:
    settings = (  # n, blocks, threads
        (0, 1, 32), (1, 1, 1), (1, 2, 32), (31, 1, 32), (256, 1, 64), (1024, 2, 128), (257, 3, 33), (1000, 2, 1024),
        (100_003, 7, 96), (40_003, 33_000, 1), (70_000, 1, 32),
    )  # fmt: skip
    for n, blocks, threads in settings:
        x, y = normal(n), normal(n, seed=1)
        label = f"n = {n:,}, {blocks:,} x {counted(threads, 'thread')}"
        demand = whole_sectors if n % 32 == 0 and threads % 32 == 0 else None
        yield Case(
            label, (0.75 if n % 2 else -2.5, x, y, blocks, threads), {"out": x}, {"accumulation": 2}, demand=demand
        )


def saxpy_far(n: int) -> Case:
    blocks = -(-n // 256)
    label = f"n = {n:,}, {blocks:,} x 256 threads"
    return Case(label, (0.75, far(n), far(n), blocks, 256), {"out": far(n)}, {"accumulation": 2})


# -- lesson 02 ---------------------------------------------------------------------------------------------------------


def clamp_nan_cases() -> Iterator[Case]:
    for n in SIZES:
        yield Case(f"n = {n:,}", (normal(n), -0.5, 0.75), {"out": normal(n)}, EXACT)
    x = torch.tensor([NAN, -INF, -3.0, -0.5, -0.25, -0.0, 0.0, 0.75, 3.0, INF])
    for low, high in ((-0.5, 0.75), (0.75, -0.5), (-INF, INF), (1.0, 1.0)):
        yield Case(f"x = {x.tolist()}, low = {low}, high = {high}", (x, low, high), {"out": x}, EXACT)


def clamp_nan_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n), -0.5, 0.75), {"out": far(n)}, EXACT)


# -- lesson 04 ---------------------------------------------------------------------------------------------------------


def bias_relu_backward_cases() -> Iterator[Case]:
    sizes = (
        (0, 0),
        (0, 5),
        (3, 0),
        (1, 1),
        (3, 5),
        (5, 3),
        (16, 16),
        (1, 257),
        (257, 1),
        (255, 33),
        (40_003, 1),
        (2, 40_003),
    )
    for rows, columns in sizes:
        grad, x, bias = normal(rows, columns), normal(rows, columns, seed=1), normal(columns, seed=2)
        label = f"{counted(rows, 'row')}, {counted(columns, 'column')}"
        yield Case(label, (grad, x, bias), {"grad_x": x}, EXACT)
    grad = torch.tensor([[1.5, -2.0, INF, -INF, NAN]])
    for x, bias in ((1.0, -1.0), (-1.0, 0.5), (1.0, -0.5), (INF, -INF), (NAN, 1.0)):
        label = f"x = {x} and bias = {bias} everywhere, grad = {grad[0].tolist()}"
        yield Case(label, (grad, torch.full((1, 5), x), torch.full((5,), bias)), {"grad_x": grad}, EXACT)


def bias_relu_backward_far(rows: int) -> Case:
    rows, columns, sure = (3, WIDE, (1, 64)) if rows == WIDE else (rows, 5, (4, 5))
    x, label = far(rows, columns), f"{rows:,} rows, {columns:,} columns"
    return Case(label, (x, x, far(columns)), {"grad_x": x}, EXACT | {"sure": sure})


# -- lesson 05 ---------------------------------------------------------------------------------------------------------


def saturating_half_cases() -> Iterator[Case]:
    tolerance = roundings(torch.float16, 1) | {"dtype": torch.float16}
    for n in SIZES:
        x = 40_000 * normal(n)
        yield Case(f"n = {n:,}", (x,), {"out": x.half()}, tolerance)
    x = torch.tensor([65504.0, 65519.0, 65520.0, 70000.0, 3e38, INF, 1e-3, 0.0, -0.0, NAN])
    for sign in (1, -1):
        yield Case(f"x = {(sign * x).tolist()}", (sign * x,), {"out": x.half()}, tolerance)


def saturating_half_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n),), {"out": far(n, dtype=torch.float16)}, roundings(torch.float16, 1))


# -- lesson 06 ---------------------------------------------------------------------------------------------------------


def gather_rows_cases() -> Iterator[Case]:
    sizes = (
        (1, 4, 0),
        (1, 4, 1),
        (3, 4, 5),
        (7, 12, 31),
        (5, 128, 9),
        (40_003, 8, 300),
        (9, 4, 70_000),
        (3, 140_000, 2),
    )
    for rows, columns, count in sizes:
        index = torch.randint(-rows, rows, (count,), generator=torch.Generator().manual_seed(count))
        if count > 1:
            index[0], index[-1] = -rows, rows - 1
        table = normal(rows, columns)
        label = f"{counted(rows, 'row')} of {columns}, {counted(count, 'index')}".replace("indexs", "indices")
        demand = at_once(16) if count else None
        yield Case(label, (table, index), {"out": normal(count, columns)}, EXACT, demand=demand)


def gather_rows_drawn(n: int) -> Case:
    index = torch.randint(-9, 9, (n,), generator=torch.Generator().manual_seed(n))
    return Case(f"9 rows of 8, {n:,} indices", (far(9, 8), index), {"out": far(n, 8)}, EXACT)


def gather_rows_far(n: int) -> Case:
    """Many indices into a small table, or a few into one of many rows or columns: its first and its last rows."""
    table, index, sure = far(9, 4), far(n, dtype=torch.int64), (256, 4)
    if n == MANY_ROWS:
        table, index = far(n, 4), torch.arange(-3, 3).repeat(900)
    elif n == MANY_COLUMNS:
        table, index, sure = far(5, n), torch.tensor([-1, 3, 0]), (1, 256)
    rows, columns = table.shape
    label = f"{rows:,} rows of {columns:,}, {len(index):,} indices"
    return Case(label, (table, index), {"out": far(len(index), columns)}, EXACT | {"sure": sure})


# -- lesson 08 ---------------------------------------------------------------------------------------------------------


def pad_border_cases() -> Iterator[Case]:
    sizes = (  # rows, columns, border
        (0, 0, 0), (0, 5, 0), (0, 0, 2), (0, 3, 1), (1, 1, 0), (1, 1, 1), (8, 32, 0), (6, 30, 1), (7, 31, 3),
        (3, 100, 2), (100, 3, 5), (33_000, 1, 1), (1, 33_000, 1), (1, 1, 40),
    )  # fmt: skip
    for rows, columns, border in sizes:
        out = normal(rows + 2 * border, columns + 2 * border)
        yield Case(f"{rows:,} x {columns:,}, border {border}", (normal(rows, columns), border), {"out": out}, EXACT)


def pad_border_far(columns: int) -> Case:
    """Without a border, so that the ends of the result are those of x."""
    rows, tolerance = rows_of_far_image(columns), EXACT | {"edge": 64, "sure": (4, 16)}
    return Case(f"{rows:,} x {columns:,}, border 0", (far(rows, columns), 0), {"out": far(rows, columns)}, tolerance)


def pad_border_drawn(n: int) -> Case:
    rows, columns, border = 7, n // 7, 3
    out = far(rows + 2 * border, columns + 2 * border)
    return Case(f"{rows} x {columns}, border {border}", (far(rows, columns), border), {"out": out}, EXACT)


MANY_ROWS, MANY_COLUMNS = 2**33 + 9, 2**34 + 8  # of a table

CHECKS = {
    "saxpy": Check(lambda a, x, y, blocks, threads: a * x + y, saxpy_cases, far=Far(saxpy_far, 2**36 + 2**31 + 1031)),
    "clamp_nan": Check(torch.clamp, clamp_nan_cases, far=Far(clamp_nan_far, least=LEAST)),
    "bias_relu_backward": Check(
        lambda grad, x, bias: torch.where(x + bias <= 0, 0.0, grad),
        bias_relu_backward_cases,
        far=Far(bias_relu_backward_far, 2**34 + 7, least=2**19 + 7, more=(WIDE,)),
    ),
    "saturating_half": Check(
        lambda x: x.clamp(-65504, 65504), saturating_half_cases, far=Far(saturating_half_far, least=LEAST)
    ),
    "gather_rows": Check(
        lambda table, index: table[index.long()],
        gather_rows_cases,
        drawn=gather_rows_drawn,
        far=Far(gather_rows_far, 2**33 + 1031, least=LEAST, more=(MANY_ROWS, MANY_COLUMNS)),
    ),
    "pad_border": Check(
        lambda x, border: torch.nn.functional.pad(x, (border,) * 4),
        pad_border_cases,
        drawn=pad_border_drawn,
        far=Far(pad_border_far, *FAR_IMAGES, more=(WIDE,)),
    ),
}
