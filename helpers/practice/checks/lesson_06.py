"""The checks of lesson 06: 16 bytes in one access."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.nn.functional import silu

from helpers.practice.asked import each, each_element, row_by_block
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import (
    EXACT,
    FEW_ROWS,
    LARGE,
    LEAST,
    NAN,
    ROWS_AND_COLUMNS,
    ROWS_OF,
    counted,
    far,
    normal,
    roundings,
)
from helpers.practice.cases import Case, Check, Far
from helpers.practice.demands import at_once

NEGATIVE = 4 * (2**31 + 2**15) + 23  # elements: a quarter of them is negative in 32 bits, and in 16
MANY_ROWS, MANY_COLUMNS = 2**33 + 9, 2**34 + 8  # of a table
MANY_VECTORS = 2**34 + 32  # columns of which 32 bits cannot count the vectors

SCALED = Calls("x[n], factor -> out[n]", factor=2.5, demand=lambda n: at_once(16) if n > 100 else None)


def float4_tails_cases() -> Iterator[Case]:
    yield from SCALED.at(0, 1, 3, 4, 5, 31, 1023, 1024, 1026, 4001, 100_003, 150_001)
    for n, in_x, in_out in ((1, 1, 1), (257, 1, 0), (258, 0, 2), (1024, 3, 3)):
        label = f"n = {n:,}, x begins {4 * in_x} bytes after a multiple of 16, out {4 * in_out}"
        yield replace(SCALED.given(label, normal(n), -0.5), offsets=(in_x, in_out))


def gathered(table: torch.Tensor, index: torch.Tensor, **more: object) -> Case:
    """The rows of a table that an index names; both are real, or at least one is a tensor of a far case."""
    (rows, columns), count = table.shape, len(index)
    label = f"{counted(rows, 'row')} of {columns:,}, {count:,} {'index' if count == 1 else 'indices'}"
    out = torch.empty(count, columns, device="meta" if "meta" in (table.device.type, index.device.type) else "cpu")
    demand = at_once(16) if count and out.device.type == "cpu" else None
    return Case(label, (table, index), {"out": out}, EXACT | more, demand=demand)


def indices(rows: int, count: int) -> torch.Tensor:
    return torch.randint(-rows, rows, (count,), generator=torch.Generator().manual_seed(count))


def gather_rows_cases() -> Iterator[Case]:
    sizes = (  # rows, columns, indices
        (1, 4, 0), (1, 4, 1), (3, 4, 5), (7, 12, 31), (5, 128, 9), (40_003, 8, 300), (9, 4, 70_000), (3, 140_000, 2),
    )  # fmt: skip
    for rows, columns, count in sizes:
        index = indices(rows, count)
        if count > 1:
            index[0], index[-1] = -rows, rows - 1
        yield gathered(normal(rows, columns), index)


def gather_rows_far(n: int) -> Case:
    """Many indices into a small table, or a few into one of many rows or columns: its first and its last rows."""
    if n == MANY_ROWS:
        return gathered(far(n, 4), torch.arange(-3, 3).repeat(900), sure=(256, 4))
    if n == MANY_COLUMNS:
        return gathered(far(5, n), torch.tensor([-1, 3, 0]), sure=(1, 256))
    return gathered(far(9, 4), far(n, dtype=torch.int64), sure=(256, 4))


def swiglus(dtype: torch.dtype) -> Calls:
    return Calls(
        "x[rows, 2 * columns] -> out[rows, columns]",
        label=ROWS_AND_COLUMNS,
        dtype=dtype,
        tolerance=roundings(dtype, 8),
        demand=lambda rows, columns: at_once(16) if columns % 8 == 0 and rows * columns else None,
        values={"x": lambda x: 2 * x},
    )


def swiglu_cases() -> Iterator[Case]:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        calls = swiglus(dtype)
        yield from calls.at((0, 8), (3, 0), (1, 1), (2, 31), (5, 64), (33, 40), (40_003, 8), (1, 140_000))
        ends = [-12.0, -16.0, 0.0, 80.0, 2.0, 2.0, 2.0, 2.0]
        for values in (ends, LARGE + [0.5] * len(LARGE)):
            x = torch.tensor([values], dtype=dtype)
            (like,) = calls.at((1, len(values) // 2))
            label = f"{like.label.partition(',')[0]}, 1 row, {x[0].tolist()}"
            yield replace(like, label=label, inputs=(x,), demand=None)
    (odd,) = swiglus(torch.float32).at((7, 24))
    yield replace(odd, label="float32, 7 rows, 24 columns, x begins at an odd element", offsets=(1,), demand=None)


def swiglu_far(rows: int) -> Case:
    """Many rows, or three of many columns, where every product has a factor in the middle, among the zeros."""
    if rows == MANY_VECTORS:
        return swiglus(torch.float32).far(3, MANY_VECTORS, sure=(1, 64))
    return swiglus(torch.float32).far(rows, 8, sure=(64, 8))


def swiglu_reference(x: torch.Tensor) -> torch.Tensor:
    gates, values = x.chunk(2, dim=1)
    return silu(gates) * values


MAXIMA = Calls("x[rows, columns] -> out[rows]", label=ROWS_OF, tolerance=EXACT)


def vector_max_cases() -> Iterator[Case]:
    yield from MAXIMA.at((0, 3), (2, 0), (3, 1), (2, 31), (2, 32), (3, 33), (2, 255), (2, 257), (3, 1000), (2, 100_003))
    yield MAXIMA.given("3 rows of 300, all below -1", -normal(3, 300).abs() - 1)
    for label, value in (("the largest", 9.0), ("NaN", NAN)):  # each thread, lane and warp has it in some row
        x = -normal(300, 300).abs() - 1
        x.fill_diagonal_(value)
        yield MAXIMA.given(f"300 rows of 300, {label} of row r at [r, r]", x)
    for place in (0, 40, 298, 299):
        x = normal(2, 300)
        x[1, place] = NAN
        yield MAXIMA.given(f"2 rows of 300, NaN at [1, {place}]", x)


CHECKS = {
    "float4_tails": Check(
        lambda x, factor: factor * x,
        float4_tails_cases,
        asked=each_element,
        far=Far(SCALED.far, more=(NEGATIVE,)),
    ),
    "gather_rows": Check(
        lambda table, index: table[index.long()],
        gather_rows_cases,
        drawn=lambda n: gathered(far(9, 8), indices(9, n)),
        far=Far(gather_rows_far, 2**33 + 1031, least=LEAST, more=(MANY_ROWS, MANY_COLUMNS)),
    ),
    "swiglu": Check(
        swiglu_reference,
        swiglu_cases,
        asked=lambda x: each(x.numel() // 2, 16),
        rounds=True,
        far=Far(
            swiglu_far,
            2**34 + 7,
            least=2**21 + 7,
            more=(MANY_VECTORS,),
            reference=lambda x: torch.zeros_like(x) if len(x) == 3 else swiglu_reference(x),
        ),
    ),
    "vector_max": Check(
        lambda x: x.amax(1) if x.shape[1] else x.new_full((len(x),), -float("inf")),
        vector_max_cases,
        asked=lambda x: row_by_block(x, per_thread=4, loads=2 * -(-x.shape[1] // 256), shared=64 * len(x)),
        far=Far(lambda rows: MAXIMA.far(rows, 1000, edge=8, sure=(2,)), *FEW_ROWS),
    ),
}
