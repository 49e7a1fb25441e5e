"""The checks of lesson 05: 16 bits in memory, 32 in registers."""

from collections.abc import Iterator

import torch

from helpers.practice.asked import each_element, near_bound, row_by_block
from helpers.practice.calls import Calls, on_vectors
from helpers.practice.case_inputs import FEW_ROWS, INF, LEAST, NAN, ROWS_OF, roundings
from helpers.practice.cases import Case, Check, Far

HALF = torch.float16
SATURATED = Calls(
    "x[n] -> out[n]",
    tolerance=roundings(HALF, 1) | {"dtype": HALF},
    dtypes={"out": HALF},
    values={"x": lambda x: 40_000 * x},
)
EDGES = torch.tensor([65504.0, 65519.0, 65520.0, 70000.0, 3e38, INF, 1e-3, 0.0, -0.0, NAN])
SHIFTED = Calls(
    "x[n], scale, shift -> out[n]",
    scale=lambda n: 1.7 if n % 2 else -0.37,
    shift=1.003,
    tolerance=roundings(torch.bfloat16, 1, absolute=4),
    dtypes=dict.fromkeys(("x", "out"), torch.bfloat16),
)
AXPY = Calls(
    "a, x[n], y[n] -> out[n]",
    a=lambda n: 0.3 if n % 2 else -1.7,
    tolerance=roundings(HALF, 1, absolute=8),
    dtypes=dict.fromkeys(("x", "y", "out"), HALF),
)
DOT = Calls(
    "a[rows, columns], b[rows, columns] -> out[rows]",
    label=ROWS_OF,
    tolerance={"dtype": torch.float32},
    sums="columns",
    dtypes=dict.fromkeys("ab", HALF),
)


def half_dot_cases() -> Iterator[Case]:
    yield from DOT.at((0, 5), (1, 0), (1, 1), (3, 31), (2, 255), (3, 256), (2, 257), (5, 1000))
    for n, value in ((100_003, 1.0), (4099, 250.0)):
        a = torch.full((2, n), value, dtype=HALF)
        yield DOT.given(f"2 rows of {n:,} elements, all {value:g}", a, a)


CHECKS = {
    "saturating_half": on_vectors(
        lambda x: x.clamp(-65504, 65504),
        SATURATED,
        *(SATURATED.given(f"x = {x.tolist()}", x, rtol=0.0, atol=0.0) for x in (EDGES, -EDGES)),
    ),
    "bf16_scale_shift": on_vectors(lambda x, scale, shift: scale * x + shift, SHIFTED, asked=each_element),
    "half_axpy": Check(
        lambda a, x, y: a * x + y,
        lambda: AXPY.at(0, 1, 2, 31, 255, 256, 511, 512, 513, 1000, 100_003),
        asked=lambda a, x, y: near_bound(x, y, per_thread=8),
        far=Far(AXPY.far, least=LEAST),
    ),
    "half_dot": Check(
        lambda a, b: (a * b).sum(1),
        half_dot_cases,
        asked=lambda a, b: row_by_block(a, per_thread=8),
        far=Far(lambda rows: DOT.far(rows, 1000, edge=8, sure=(2,)), *FEW_ROWS),
    ),
}
