"""The checks of lessons 04 to 06: see checks.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch

from helpers.practice.asked import Launched, each
from helpers.practice.case_inputs import INF, LARGE, LEAST, NAN, SIZES, counted, far, normal, roundings, short
from helpers.practice.cases import Case, Check, Far

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

# -- lesson 04 ---------------------------------------------------------------------------------------------------------


def softplus_backward_cases() -> Iterator[Case]:
    tolerance = roundings(torch.float32, 16) | {"atol": 1e-37}  # values below 1.2e-38 may be flushed to 0
    for n in SIZES:
        yield Case(f"n = {n:,}", (normal(n), 5 * normal(n, seed=1)), {"grad_x": normal(n)}, tolerance)
    x = torch.tensor([-100.0, -87.0, -20.0, 0.0, 20.0, 87.0, 100.0, NAN])
    yield Case(f"x = {x.tolist()}", (torch.full_like(x, -1.5), x), {"grad_x": x}, tolerance)


def softplus_backward_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n), far(n)), {"grad_x": far(n)}, roundings(torch.float32, 16))


def gelu_erf_cases() -> Iterator[Case]:
    def case(label: str, grad: torch.Tensor, x: torch.Tensor, absolute: float) -> Case:
        return Case(label, (grad, x), {"out": x, "grad_x": x}, roundings(torch.float32, 128, absolute))

    for n in SIZES:
        yield case(f"n = {n:,}", normal(n), 2 * normal(n, seed=1), 16)
    far = torch.tensor([-3.0, -4.0, -5.0, -6.5, -8.0])
    yield case(f"x = {far.tolist()}", torch.ones_like(far), far, 0)
    large = torch.tensor([12.0, 200.0, 1e30, NAN])
    yield case(f"x = {large.tolist()}", torch.ones_like(large), large, 0)


def gelu_erf_far(n: int) -> Case:
    outputs = {"out": far(n), "grad_x": far(n)}
    return Case(f"n = {n:,}", (far(n), far(n)), outputs, roundings(torch.float32, 128, absolute=16))


def gelu_erf_reference(grad: torch.Tensor, x: torch.Tensor) -> tuple:
    x = x.requires_grad_()
    out = x * torch.special.erfc(-x * 0.5**0.5) / 2
    return out.detach(), torch.autograd.grad(out, x, grad)[0]


def column_sum_cases() -> Iterator[Case]:
    def case(rows: int, columns: int) -> Case:
        label = f"{counted(rows, 'row')}, {counted(columns, 'column')}"
        return Case(label, (normal(rows, columns),), {"out": normal(columns)}, {"accumulation": max(1, rows)})

    yield from (case(*size) for size in ((0, 0), (3, 0), (0, 5), (1, 1), (7, 31), (8, 32), (9, 33), (257, 3)))
    x = normal(9, 33)
    x[8, 0], x[3, 7], x[0, 32] = NAN, INF, -INF
    label = "9 rows, 33 columns, NaN at [8, 0], inf at [3, 7], -inf at [0, 32]"
    yield Case(label, (x,), {"out": normal(33)}, {"accumulation": 9})
    yield from (case(*size) for size in ((1000, 65), (60, 70), (33_000, 1), (3, 40_003)))


def column_sum_asked(x: torch.Tensor) -> list[Launched]:
    rows, columns = x.shape
    return [Launched(loading=min(rows, 8) * columns, atomics=False)] if columns else []


def column_sum_far(columns: int) -> Case:
    label, tolerance = f"9 rows, {columns:,} columns", {"edge": 64, "sure": (32,), "accumulation": 9}
    return Case(label, (far(9, columns),), {"out": far(columns)}, tolerance)


# -- lesson 05 ---------------------------------------------------------------------------------------------------------


def bf16_scale_shift_cases() -> Iterator[Case]:
    for n in SIZES:
        x, scale, shift = normal(n).bfloat16(), 1.7 if n % 2 else -0.37, 1.003
        tolerance = roundings(torch.bfloat16, 1, absolute=4)
        yield Case(f"n = {n:,}", (x, scale, shift), {"out": x}, tolerance)


def bf16_scale_shift_far(n: int) -> Case:
    x, tolerance = far(n, dtype=torch.bfloat16), roundings(torch.bfloat16, 1, absolute=4)
    return Case(f"n = {n:,}", (x, 1.7, 1.003), {"out": x}, tolerance)


def half_axpy_cases() -> Iterator[Case]:
    for n in (0, 1, 2, 31, 255, 256, 511, 512, 513, 1000, 100_003):
        x, y = normal(n).half(), normal(n, seed=1).half()
        tolerance = roundings(torch.float16, 1, absolute=8)
        demand = at_once(4) if n >= 31 else None
        yield Case(f"n = {n:,}", (0.3 if n % 2 else -1.7, x, y), {"out": x}, tolerance, demand=demand)


def half_axpy_far(n: int) -> Case:
    x = far(n, dtype=torch.float16)
    return Case(f"n = {n:,}", (0.3, x, x), {"out": x}, roundings(torch.float16, 1, absolute=8))


def half_dot_cases() -> Iterator[Case]:
    tolerance = {"dtype": torch.float32}
    for rows, n in ((0, 5), (1, 0), (1, 1), (3, 31), (2, 255), (3, 256), (2, 257), (5, 1000)):
        a, b = normal(rows, n).half(), normal(rows, n, seed=1).half()
        label = f"{counted(rows, 'row')} of {n:,}"
        yield Case(label, (a, b), {"out": torch.empty(rows)}, tolerance | {"accumulation": max(1, n)})
    for n, value in ((100_003, 1.0), (4099, 250.0)):
        a = torch.full((2, n), value, dtype=torch.float16)
        label = f"2 rows of {n:,} elements, all {value:g}"
        yield Case(label, (a, a), {"out": torch.empty(2)}, tolerance | {"accumulation": n})


def half_dot_far(rows: int) -> Case:
    a, tolerance = far(rows, 1000, dtype=torch.float16), {"edge": 8, "sure": (2,), "accumulation": 1000}
    return Case(f"{rows:,} rows of 1,000", (a, a), {"out": far(rows)}, tolerance)


# -- lesson 06 ---------------------------------------------------------------------------------------------------------


def at_once(size: int) -> Callable[[Report], str]:
    """A demand: at most half of the requests to global memory move fewer than `size` bytes per lane."""

    def look(report: Report) -> str:
        lines = [line for line in report.lines if line.space == "global"]
        narrow = [line for line in lines if line.size < size]
        if 2 * sum(line.requests for line in narrow) <= sum(line.requests for line in lines):
            return ""
        line = max(narrow, key=lambda line: line.requests)
        return (
            f"the result is right, but a thread should move {size} bytes in one access. In line {line.line}, "
            f"`{line.source}`, a {line.kind} moves {line.size}"
        )

    return look


def float4_tails_cases() -> Iterator[Case]:
    for n in (0, 1, 3, 4, 5, 31, 1023, 1024, 1026, 4001, 100_003, 150_001):
        x = normal(n)
        yield Case(f"n = {n:,}", (x, 2.5), {"out": x}, demand=at_once(16) if n > 100 else None)
    for n, in_x, in_out in ((1, 1, 1), (257, 1, 0), (258, 0, 2), (1024, 3, 3)):
        x = normal(n)
        label = f"n = {n:,}, x begins {4 * in_x} bytes after a multiple of 16, out {4 * in_out}"
        yield Case(label, (x, -0.5), {"out": x}, offsets=(in_x, in_out))


def float4_tails_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n), 2.5), {"out": far(n)})


def swiglu_cases() -> Iterator[Case]:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for rows, columns in ((0, 8), (3, 0), (1, 1), (2, 31), (5, 64), (33, 40), (40_003, 8), (1, 140_000)):
            x = (2 * normal(rows, 2 * columns)).to(dtype)
            label = f"{short(dtype)}, {counted(rows, 'row')}, {counted(columns, 'column')}"
            demand = at_once(16) if columns % 8 == 0 and rows * columns else None
            yield Case(label, (x,), {"out": x[:, :columns]}, roundings(dtype, 8), demand=demand)
        far = torch.tensor([[-12.0, -16.0, 0.0, 80.0, 2.0, 2.0, 2.0, 2.0]], dtype=dtype)
        label = f"{short(dtype)}, 1 row, {far[0].tolist()}"
        yield Case(label, (far,), {"out": far[:, :4]}, roundings(dtype, 8))
        large = torch.tensor([LARGE + [0.5] * len(LARGE)], dtype=dtype)
        label = f"{short(dtype)}, 1 row, {large[0].tolist()}"
        yield Case(label, (large,), {"out": large[:, : len(LARGE)]}, roundings(dtype, 8))
    x = normal(7, 48)
    yield Case("float32, 7 rows, 24 columns, x begins at an odd element", (x,), {"out": x[:, :24]}, offsets=(1,))


def swiglu_far(rows: int) -> Case:
    """Many rows, or three of many columns, where every product has a factor in the middle, among the zeros."""
    rows, columns, sure = (3, MANY_COLUMNS, (1, 64)) if rows == MANY_COLUMNS else (rows, 8, (64, 8))
    outputs, tolerance = {"out": far(rows, columns)}, roundings(torch.float32, 8) | {"sure": sure}
    return Case(f"float32, {rows:,} rows, {columns:,} columns", (far(rows, 2 * columns),), outputs, tolerance)


def swiglu_far_reference(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x) if len(x) == 3 else swiglu_reference(x)


def swiglu_reference(x: torch.Tensor) -> torch.Tensor:
    gates, values = x.chunk(2, dim=1)
    return torch.nn.functional.silu(gates) * values


def vector_max_cases() -> Iterator[Case]:
    exact = {"rtol": 0.0}
    for rows, n in ((0, 3), (2, 0), (3, 1), (2, 31), (2, 32), (3, 33), (2, 255), (2, 257), (3, 1000), (2, 100_003)):
        yield Case(f"{counted(rows, 'row')} of {n:,}", (normal(rows, n),), {"out": torch.empty(rows)}, exact)
    below = -normal(3, 300).abs() - 1
    yield Case("3 rows of 300, all below -1", (below,), {"out": torch.empty(3)}, exact)
    for label, value in (("the largest", 9.0), ("NaN", NAN)):  # each thread, lane and warp has it in some row
        x = -normal(300, 300).abs() - 1
        x.fill_diagonal_(value)
        yield Case(f"300 rows of 300, {label} of row r at [r, r]", (x,), {"out": torch.empty(300)}, exact)
    for place in (0, 40, 298, 299):
        x = normal(2, 300)
        x[1, place] = NAN
        yield Case(f"2 rows of 300, NaN at [1, {place}]", (x,), {"out": torch.empty(2)}, exact)


def vector_max_far(rows: int) -> Case:
    outputs, tolerance = {"out": far(rows)}, {"edge": 8, "sure": (2,), "rtol": 0.0}
    return Case(f"{rows:,} rows of 1,000", (far(rows, 1000),), outputs, tolerance)


def vector_max_reference(x: torch.Tensor) -> torch.Tensor:
    return x.amax(1) if x.shape[1] else x.new_full((len(x),), -float("inf"))


def _row_by_block(x: torch.Tensor, per_thread: int, loads: int = 0, shared: int = 0) -> list[Launched]:
    """A block of 256 threads for each row, whose elements its threads share."""
    rows, n = x.shape
    loading = rows * (min(n, 256) // per_thread)
    return [Launched(loading=loading, loads=loads, shared=shared, atomics=False)] if rows else []


NEGATIVE = 4 * (2**31 + 2**15) + 23  # elements: a quarter of them is negative in 32 bits, and in 16
MANY_COLUMNS = 2**34 + 32  # of which 32 bits cannot count the vectors
FEW = 70_001  # rows whose elements 32 bits can index
FEWER = 20_001  # rows whose blocks 16 bits can index
MANY = 2**26 + 5  # and cannot

CHECKS = {
    "softplus_backward": Check(
        lambda grad, x: grad * x.sigmoid(),
        softplus_backward_cases,
        asked=lambda grad, x: each(len(x)),
        rounds=True,
        far=Far(softplus_backward_far, least=LEAST),
    ),
    "gelu_erf": Check(
        gelu_erf_reference,
        gelu_erf_cases,
        asked=lambda grad, x: 2 * each(len(x)),
        rounds=True,
        far=Far(gelu_erf_far, least=LEAST),
    ),
    "column_sum": Check(
        lambda x: x.sum(0),
        column_sum_cases,
        asked=column_sum_asked,
        rounds=True,
        repeatable=True,
        far=Far(column_sum_far, 2**34 + 7, least=2**19 + 7),
    ),
    "bf16_scale_shift": Check(
        lambda x, scale, shift: scale * x + shift,
        bf16_scale_shift_cases,
        asked=lambda x, scale, shift: each(len(x)),
        far=Far(bf16_scale_shift_far, least=LEAST),
    ),
    "half_axpy": Check(
        lambda a, x, y: a * x + y,
        half_axpy_cases,
        asked=lambda a, x, y: each(len(x)),
        far=Far(half_axpy_far, least=LEAST),
    ),
    "half_dot": Check(
        lambda a, b: (a * b).sum(1),
        half_dot_cases,
        asked=lambda a, b: _row_by_block(a, per_thread=8),
        far=Far(half_dot_far, MANY, FEW, FEWER),
    ),
    "float4_tails": Check(
        lambda x, factor: factor * x,
        float4_tails_cases,
        asked=lambda x, factor: each(len(x)),
        far=Far(float4_tails_far, more=(NEGATIVE,)),
    ),
    "swiglu": Check(
        swiglu_reference,
        swiglu_cases,
        asked=lambda x: each(x.numel() // 2, 16),
        rounds=True,
        far=Far(swiglu_far, 2**34 + 7, least=2**21 + 7, more=(MANY_COLUMNS,), reference=swiglu_far_reference),
    ),
    "vector_max": Check(
        vector_max_reference,
        vector_max_cases,
        asked=lambda x: _row_by_block(x, per_thread=4, loads=2 * -(-x.shape[1] // 256), shared=64 * len(x)),
        far=Far(vector_max_far, MANY, FEW, FEWER),
    ),
}
