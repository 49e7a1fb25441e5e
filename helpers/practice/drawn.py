"""Cases of which no answer can know sizes and values beforehand: they are drawn from the answer's own text.

So the same answer always meets the same ones. There are two of one size, with different values: a result that was kept
from an earlier call is wrong in the second.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

import torch

from helpers.practice.cases import Case, Check

FEWEST, MOST = 300, 2000  # elements of the long dimension
_OF_FAR_CASES = ("edge", "sure", "width")  # of a far case's tolerance; they do not matter here


def drawn_cases(what: Check, last: Case, seed: int) -> Iterator[Case]:
    """Two cases with values of their own: of a size of their own, or else like the exercise's `last` case."""
    numbers = random.Random(seed)
    size = numbers.randint(FEWEST, MOST)
    make = what.drawn or (what.far.case if what.far else lambda size: last)
    for time in ("", " again"):
        case = make(size)
        yield _with_values(replace(case, label=f"{case.label}, with other values{time}", names=last.names), numbers)


def _with_values(case: Case, numbers: random.Random) -> Case:
    values = torch.Generator().manual_seed(numbers.getrandbits(32))

    def drawn(value: object) -> object:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return torch.randn(value.shape, generator=values).to(value.dtype)
        return round(numbers.uniform(0.25, 0.75), 3) if isinstance(value, float) else value

    tolerance = {key: value for key, value in case.tolerance.items() if key not in _OF_FAR_CASES}
    outputs = {name: torch.empty(x.shape, dtype=x.dtype) for name, x in case.outputs.items()}
    if outputs:
        tolerance["dtype"] = next(iter(outputs.values())).dtype
    return replace(case, inputs=tuple(map(drawn, case.inputs)), outputs=outputs, tolerance=tolerance, demand=None)
