"""The checks of lesson 13: bugs to find and fix."""

from dataclasses import replace
from typing import Any

import torch

from helpers.practice.calls import Calls, on_vectors
from helpers.practice.case_inputs import EXACT, LEAST, SIZES, far
from helpers.practice.case_runner import plain
from helpers.practice.cases import Case, Check, Far
from helpers.practice.demands import at_most, barriers_for_all
from kernel_xray.machine.toolchain import device

WHOLE_BLOCKS = 2**36 + 1024, 2**24 + 1024, 2**22 + 1024  # the lengths of far cases

DIFFERENCES = Calls("x[n] -> out[n]", sums="2")


def counts(digits: torch.Tensor, **more: Any) -> Case:
    """How often each of 16 digits comes; `more` goes to the case."""
    out = torch.zeros(16, dtype=torch.int32, device=digits.device)
    return Case(f"n = {len(digits):,}", (digits,), {"counts": out}, **more)


def digits(n: int) -> torch.Tensor:
    return torch.randint(0, 16, (n,), generator=torch.Generator().manual_seed(n), dtype=torch.int32)


def digits_cases() -> list[Case]:
    advice = "let each thread read its own digit, and leave the reading of counts to the atomic operation"
    alike = [torch.full((600,), digit, dtype=torch.int32) for digit in (0, 15)]
    return [
        *(counts(digits(n), demand=at_most(-(-n // 32), "load", advice) if n < 5000 else None) for n in SIZES),
        *(replace(counts(x), label=f"600 times {x[0]}") for x in alike),
    ]


def digits_far(n: int) -> Case:
    """The counts of the first and the last two blocks, which are whole."""
    return counts(far(n, dtype=torch.int32), tolerance=EXACT | {"sure": (16,)})


DIGITS = Check(
    lambda digits: torch.bincount(digits.long(), minlength=16).int(),
    digits_cases,
    drawn=lambda n: counts(digits(n)),
    far=Far(digits_far, *WHOLE_BLOCKS),
)

SUMS = Calls("x[n] -> out[-(-n // 256)]", sums="256", demand=lambda n: barriers_for_all)


def fix_barrier_far_reference(x: torch.Tensor) -> torch.Tensor:
    """The sums of the first and the last two blocks, in results of which 512 are kept at either end."""
    sums = x.view(4, 256).sum(1)
    return torch.cat([sums[:2], x.new_zeros(1020), sums[2:]])


LAUNCHED = Calls("x[n], factor, threads -> out[n]", factor=2.5, label="n = {n:,}, blocks of {threads:,}")


def a_failed_launch_raises(function: Any) -> str:
    """What is wrong with how fix_launch reports a launch that fails, or ""."""
    x = torch.ones(100, device=device)
    for threads in (1025, 2048, 2**16 + 128, 2**20):
        try:
            function(x, 2.0, threads, torch.empty_like(x))
        except RuntimeError:
            pass
        else:
            return f"blocks of {threads:,} threads: the call returned, although its launch had failed"
        try:
            function(x, 2.0, 128, torch.empty_like(x))
        except RuntimeError as error:
            return f"after a failed launch, a call with blocks of 128 threads raised\n  {plain(error)}"
    return ""


CHECKS = {
    "fix_bounds": on_vectors(
        lambda x: torch.cat([x.diff(), x.new_zeros(min(1, len(x)))]),
        DIFFERENCES,
        far=Far(lambda n: DIFFERENCES.far(n, edge=1024), least=LEAST),
    ),
    "fix_race": DIGITS,
    "fix_unwritten": DIGITS,
    "fix_barrier": Check(
        lambda x: torch.nn.functional.pad(x, (0, -len(x) % 256)).view(-1, 256).sum(1),
        lambda: SUMS.at(*SIZES),
        far=Far(lambda n: SUMS.far(n, sure=(2,)), *WHOLE_BLOCKS[:2], reference=fix_barrier_far_reference),
    ),
    "fix_launch": Check(
        lambda x, factor, threads: factor * x,
        lambda: LAUNCHED.at((0, 32), (1, 1), (31, 32), (257, 256), (1000, 1024), (40_003, 1), (100_003, 96)),
        registered=a_failed_launch_raises,
        far=Far(lambda n: LAUNCHED.far(n, 256), least=LEAST),
        why_not={"attested": "it is asked whether a call raises"},
    ),
}
