"""The checks of lesson 03: fused operators in four dtypes."""

from collections.abc import Iterator

import torch
from torch.nn.functional import silu

from helpers.practice.asked import each_element
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import DTYPES, LARGE, LEAST, NAN, roundings
from helpers.practice.cases import Case, Check, Far

LENGTHS = (0, 1, 257, 4099, 40_003)


def blends(dtype: torch.dtype, absolute: float = 0) -> Calls:
    positive = dict.fromkeys("ab", lambda x: x.abs().add(0.5))  # so that nothing cancels
    tolerance = roundings(dtype, 4, absolute)
    return Calls("a[n], b[n], weight -> out[n]", weight=0.3, dtype=dtype, tolerance=tolerance, values=positive)


def blend_cases() -> Iterator[Case]:
    for dtype in DTYPES:
        yield from blends(dtype).at(*LENGTHS)
    ends = torch.tensor([-60000.0, 60000.0, -3e4, 1.0], dtype=torch.float16)
    yield blends(torch.float16).given("from +-60000 to -+60000", ends, ends.neg(), 0.25)


def silus(dtype: torch.dtype) -> Calls:
    return Calls("a[n], b[n] -> out[n]", dtype=dtype, tolerance=roundings(dtype, 8), values={"a": lambda a: 3 * a})


def silu_mul_cases() -> Iterator[Case]:
    for dtype in DTYPES:
        yield from silus(dtype).at(*LENGTHS)
        for values, b in (([-12.0, -11.25, -16.0, 12.0, 80.0, 0.0, -0.0, NAN], 2.0), (LARGE, 0.5)):
            a = torch.tensor(values, dtype=dtype)
            yield silus(dtype).given(f"a = {values}", a, torch.full_like(a, b))


def silu_gradients(dtype: torch.dtype) -> Calls:
    signature, tolerance = "grad[n], a[n], b[n] -> grad_a[n], grad_b[n]", roundings(dtype, 16, absolute=64)
    return Calls(signature, dtype=dtype, tolerance=tolerance, values={"a": lambda a: 2 * a})


def silu_mul_backward_cases() -> Iterator[Case]:
    for dtype in DTYPES:
        yield from silu_gradients(dtype).at(*LENGTHS)
        # Terms as large as a cancel in the derivative's other forms.
        for values, absolute in (([-12.0, -11.25, 0.0, NAN], 0.5), ([12.0, 16.0, *LARGE], 64)):
            a, tolerance = torch.tensor(values, dtype=dtype), roundings(dtype, 16, absolute)
            ones = torch.ones_like(a)
            yield silu_gradients(dtype).given(f"a = {values}", ones, a, ones, **tolerance)


def silu_mul_backward_reference(grad: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple:
    a, b = a.requires_grad_(), b.requires_grad_()
    return torch.autograd.grad(silu(a) * b, (a, b), grad)


CHECKS = {
    "blend": Check(
        torch.lerp,
        blend_cases,
        asked=each_element,
        rounds=True,
        far=Far(blends(torch.float32, absolute=8).far, least=LEAST),
    ),
    "silu_mul": Check(
        lambda a, b: silu(a) * b,
        silu_mul_cases,
        asked=each_element,
        rounds=True,
        far=Far(silus(torch.float32).far, least=LEAST),
    ),
    "silu_mul_backward": Check(
        silu_mul_backward_reference,
        silu_mul_backward_cases,
        asked=each_element,
        rounds=True,
        far=Far(silu_gradients(torch.float32).far, least=LEAST),
    ),
}
