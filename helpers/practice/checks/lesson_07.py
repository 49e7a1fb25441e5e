"""The checks of lesson 07: what the lanes of a warp and the blocks of a grid compute together."""

from collections.abc import Iterator

import torch

from helpers.practice.asked import Launched
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import FEW_ROWS, INF, LEAST, NAN, ROWS_AND_COLUMNS, ROWS_OF, SIZES, far, normal
from helpers.practice.cases import Case, Check, Far
from helpers.practice.demands import at_most

READ_ONCE = ("load", "read each element once")
PREFIXES = Calls(
    "x[rows, columns] -> out[rows, columns]",
    label=ROWS_AND_COLUMNS,
    sums="columns",
    demand=lambda rows, columns: at_most(rows, *READ_ONCE) if 0 < rows < 200 and columns else None,
)
LOGSUMEXP = Calls(
    "x[rows, columns] -> out[rows]",
    label=ROWS_OF,
    sums="64 + columns // 8",
    demand=lambda rows, columns: at_most(rows * -(-columns // 32), *READ_ONCE) if rows * columns < 5000 else None,
    values={"x": lambda x: 4 * x},
)


def warp_prefix_sum_cases() -> Iterator[Case]:
    yield from PREFIXES.at((0, 5), (3, 0), (1, 1), (1, 32), (2, 31), (8, 32), (9, 17), (100, 3), (1003, 2))
    x = normal(2, 31)
    x[0, 9], x[1, 20] = INF, NAN
    yield PREFIXES.given("2 rows, 31 columns, inf in one and NaN in the other", x)


def online_logsumexp_cases() -> Iterator[Case]:
    yield from LOGSUMEXP.at((0, 5), (2, 0), (1, 1), (3, 31), (4, 32), (5, 33), (2, 257), (3, 1000), (1, 40_003))
    for special in ((-INF,), (1000.0, 1001.0), (-1000.0, -1001.0), (INF, 1.0), (NAN, 1.0), (1.0, NAN), (-INF, 2.0)):
        yield LOGSUMEXP.given(f"x = {list(special)}", torch.tensor([special]))
    x = torch.full((2, 70), -INF)
    x[1, 40] = NAN
    yield LOGSUMEXP.given("2 rows of 70, all -inf, but NaN at [1, 40]", x)


def online_logsumexp_far(rows: int) -> Case:
    return LOGSUMEXP.far(rows, 1000 if rows < 2**32 else 3, edge=8, sure=(2,), accumulation=256)


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
        lambda x: x.cumsum(1),
        warp_prefix_sum_cases,
        far=Far(lambda rows: PREFIXES.far(rows, 20, sure=(4, 20)), 2**32 + 2**31 + 7, 2**17 + 3, 20_003),
    ),
    "online_logsumexp": Check(
        lambda x: x.logsumexp(1) if x.shape[1] else x.new_full((len(x),), -INF),
        online_logsumexp_cases,
        far=Far(online_logsumexp_far, *FEW_ROWS, (2**32 + 2**31 + 7,)),
    ),
    "compact": Check(
        lambda x: x[x > 0], compact_cases, asked=compact_asked, waits=1, far=Far(compact_far, 2**33 + 1031, least=LEAST)
    ),
}
