"""The checks of lesson 07: see checks.py."""

from collections.abc import Iterator

import torch

from helpers.practice.asked import Launched
from helpers.practice.case_inputs import INF, LEAST, NAN, SIZES, counted, far, normal
from helpers.practice.cases import Case, Check, Far
from helpers.practice.demands import at_most


def warp_prefix_sum_cases() -> Iterator[Case]:
    sizes = ((0, 5), (3, 0), (1, 1), (1, 32), (2, 31), (8, 32), (9, 17), (100, 3), (1003, 2))
    for rows, columns in sizes:
        x = normal(rows, columns)
        demand = at_most(rows, "load", "read each element once") if 0 < rows < 200 and columns else None
        label = f"{counted(rows, 'row')}, {counted(columns, 'column')}"
        yield Case(label, (x,), {"out": x}, {"accumulation": max(1, columns)}, demand=demand)
    x = normal(2, 31)
    x[0, 9], x[1, 20] = INF, NAN
    yield Case("2 rows, 31 columns, inf in one and NaN in the other", (x,), {"out": x}, {"accumulation": 31})


def warp_prefix_sum_far(rows: int) -> Case:
    return Case(f"{rows:,} rows of 20", (far(rows, 20),), {"out": far(rows, 20)}, {"sure": (4, 20), "accumulation": 20})


def online_logsumexp_cases() -> Iterator[Case]:
    sizes = ((0, 5), (2, 0), (1, 1), (3, 31), (4, 32), (5, 33), (2, 257), (3, 1000), (1, 40_003))
    for rows, columns in sizes:
        x = 4 * normal(rows, columns)
        demand = at_most(rows * -(-columns // 32), "load", "read each element once") if x.numel() < 5000 else None
        label = f"{counted(rows, 'row')} of {columns:,}"
        yield Case(label, (x,), {"out": normal(rows)}, {"accumulation": 64 + columns // 8}, demand=demand)
    for special in ((-INF,), (1000.0, 1001.0), (-1000.0, -1001.0), (INF, 1.0), (NAN, 1.0), (1.0, NAN), (-INF, 2.0)):
        x = torch.tensor([special])
        yield Case(f"x = {list(special)}", (x,), {"out": normal(1)}, {"accumulation": 64})
    x = torch.full((2, 70), -INF)
    x[1, 40] = NAN
    yield Case("2 rows of 70, all -inf, but NaN at [1, 40]", (x,), {"out": normal(2)}, {"accumulation": 64})


def online_logsumexp_reference(x: torch.Tensor) -> torch.Tensor:
    return x.logsumexp(1) if x.shape[1] else x.new_full((len(x),), -INF)


def online_logsumexp_far(rows: int) -> Case:
    columns, tolerance = 1000 if rows < 2**32 else 3, {"edge": 8, "sure": (2,), "accumulation": 256}
    return Case(f"{rows:,} rows of {columns:,}", (far(rows, columns),), {"out": far(rows)}, tolerance)


def compact_cases() -> Iterator[Case]:
    for n in SIZES:
        yield Case(f"n = {n:,}", (normal(n),))
    every = normal(600).abs() + 1
    yield Case("600 positive elements", (every,))
    yield Case("600 negative elements", (-every,))
    some = torch.tensor([NAN, 1.0, 0.0, -0.0, 2.0, -INF, INF, 1e-40])
    yield Case(f"x = {some.tolist()}", (some,))
    alone = torch.full((1000,), -1.0)
    alone[777] = 3
    yield Case("1,000 elements, only x[777] positive", (alone,))


def compact_asked(x: torch.Tensor) -> list[Launched]:
    reads = Launched(loading=len(x) // 8, loads=8, atomics=False)  # its element two or three times, and first
    return [reads, Launched(), reads] if len(x) else []


def compact_far(n: int) -> Case:
    """The middle of x holds zeros, of which none is kept: the results are those of both ends."""
    return Case(f"n = {n:,}", (far(n),), tolerance={"edge": 256, "rtol": 0.0})


CHECKS = {
    "warp_prefix_sum": Check(
        lambda x: x.cumsum(1), warp_prefix_sum_cases, far=Far(warp_prefix_sum_far, 2**32 + 2**31 + 7, 2**17 + 3, 20_003)
    ),
    "online_logsumexp": Check(
        online_logsumexp_reference,
        online_logsumexp_cases,
        far=Far(online_logsumexp_far, 2**26 + 5, 70_001, 20_001, (2**32 + 2**31 + 7,)),
    ),
    "compact": Check(
        lambda x: x[x > 0], compact_cases, asked=compact_asked, waits=1, far=Far(compact_far, 2**33 + 1031, least=LEAST)
    ),
}
