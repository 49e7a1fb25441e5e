"""The checks of lesson 01: a thread for each element, and a few threads for many."""

import torch

from helpers.practice.asked import Launched, each, each_element
from helpers.practice.calls import Calls, on_vectors
from helpers.practice.case_inputs import LEAST, SPECIAL
from helpers.practice.cases import Check, Far
from helpers.practice.demands import whole_sectors

SCALED = Calls("x[n], factor -> out[n]", factor=lambda n: 2.5 if n % 2 else -0.375)
ROLLED = Calls("x[n], shift -> out[n]")
SAXPY = Calls(
    "a, x[n], y[n], blocks, threads -> out[n]",
    a=lambda n, *grid: 0.75 if n % 2 else -2.5,
    label="n = {n:,}, {blocks:,} x {threads:thread}",
    sums="2",
    demand=lambda n, blocks, threads: whole_sectors if n % 32 == 0 and threads % 32 == 0 else None,
)
AVERAGED = Calls(
    "x[n], radius, blocks, threads -> out[n]",
    label="n = {n:,}, radius = {radius:,}, {blocks:,} x {threads:thread}",
    sums="min(n, 2 * radius + 1)",
)


def moving_average_asked(x: torch.Tensor, radius: int, blocks: int, threads: int) -> list[Launched]:
    asked = Launched(storing=min(len(x), blocks * threads), grid=(blocks, 1, 1), block=(threads, 1, 1))
    return [asked] if len(x) else []


def moving_average_reference(x: torch.Tensor, radius: int, blocks: int, threads: int) -> torch.Tensor:
    sums = torch.cat([x.new_zeros(1), x.cumsum(0)])
    i = torch.arange(len(x), device=x.device)
    first, after = (i - radius).clamp(min=0), (i + radius + 1).clamp(max=len(x))
    return (sums[after] - sums[first]) / (after - first)


CHECKS = {
    "vector_scale": on_vectors(
        lambda x, factor: factor * x,
        SCALED,
        SCALED.given(f"x = {SPECIAL}", torch.tensor(SPECIAL), -2.0),
        asked=lambda x, factor: each(len(x), 1),
    ),
    "saxpy": Check(
        lambda a, x, y, blocks, threads: a * x + y,
        lambda: SAXPY.at(
            (0, 1, 32), (1, 1, 1), (1, 2, 32), (31, 1, 32), (256, 1, 64), (1024, 2, 128), (257, 3, 33), (1000, 2, 1024),
            (100_003, 7, 96), (40_003, 33_000, 1), (70_000, 1, 32),
        ),
        far=Far(lambda n: SAXPY.far(n, -(-n // 256), 256), 2**36 + 2**31 + 1031),
    ),
    "roll": Check(
        lambda x, shift: x.roll(shift % len(x)) if len(x) else x,
        lambda: ROLLED.at(
            (0, 3), (1, 0), (1, -5), (5, 2), (256, 1), (257, -1), (257, 300), (257, -1000), (100_003, 2**40 + 1)
        ),
        asked=each_element,
        # The shift needs more than 32 bits, too; it moves the ends by 3, to the left.
        far=Far(
            lambda n: ROLLED.far(n, n - 3, edge=1024), least=LEAST, reference=lambda x, shift: x.roll(-3)
        ),
    ),
    "moving_average": Check(
        moving_average_reference,
        lambda: AVERAGED.at(
            (0, 1, 1, 32), (1, 0, 1, 1), (1, 3, 2, 32), (31, 1, 1, 32), (256, 2, 1, 256), (257, 2, 1, 256),
            (257, 300, 3, 33), (1000, 5, 1, 32), (1000, 0, 2, 1024), (100_003, 20, 7, 96), (257, 65_537, 3, 33),
            (40_003, 1, 33_000, 1),
        ),
        asked=moving_average_asked,
        rounds=True,
        far=Far(lambda n: AVERAGED.far(n, 2, -(-n // 256), 256, edge=1024), 2**36 + 2**31 + 1031),
    ),
}  # fmt: skip
