"""Is a tensor right? Tolerances derived from rounding, and a comparison that NaN cannot pass.

The tolerance. Let u be the unit round-off of the output's dtype (half the distance from 1 to the next number: 2**-24
for float32) and v the unit round-off of the accumulator's dtype (float32 for the 16-bit types, otherwise the same). An
output element that sums n terms ("accumulation") is accepted if

    |actual - expected| <= 4 * u * |expected|                                      for n = 1
    |actual - expected| <= 4 * (u * |expected| + sqrt(n) * v * max(|expected|, r)) for n > 1

where r is the root mean square of the finite expected values. Rounding errors of a sum have random signs, so they grow
with sqrt(n) [N. J. Higham and T. Mary, SIAM J. Sci. Comput. 41 (2019), A2815]. Where positive and negative terms
cancel, the errors are as large as in a typical element, hence r. Pass `rtol` or `atol` to use atol + rtol * |expected|
instead, as torch.testing.assert_close does; if only one is given, the other is 0.
"""

import math
import textwrap
from dataclasses import dataclass

import numpy as np
import torch

from helpers.ladder.checking.hints import hints_for

SAFETY = 4.0  # unit round-offs allowed: CUDA's math functions are off by up to 2 ULPs
NARROW = (torch.float16, torch.bfloat16)


class CheckFailed(AssertionError):
    """A result is wrong. The message says what, where, and the usual cause.

    output, index, shape: the first wrong element, and the shape that it is in, if values are what is wrong.
    right: which elements are right, flat
    """

    output: int = 0
    index: tuple[int, ...] | None = None
    shape: tuple[int, ...] = ()
    right: torch.Tensor | None = None


@dataclass(frozen=True)
class CheckResult:
    """A passed check. Its repr is one line."""

    name: str
    elements: int
    worst_error: float  # max |actual - expected|; 0 if there are no elements
    tolerance: str  # the allowed error and its reason
    rounded: bool = False  # whether every element is the expected value, rounded once

    def __repr__(self) -> str:
        what = "1 element agrees" if self.elements == 1 else f"{self.elements:,} elements agree"
        return f"{self.name}: {what} with the reference; worst error {self.worst_error:.2g}"


@dataclass(frozen=True)
class Tolerance:
    """atol + rtol * |expected| + spread * max(|expected|, rms), explained by `text`."""

    rtol: float
    atol: float
    spread: float
    text: str

    def allowed(self, expected: torch.Tensor) -> torch.Tensor:
        """The allowed error of each element of `expected` (float64, finite)."""
        size = expected.abs()
        limit = self.atol + self.rtol * size
        if self.spread and expected.numel():
            limit = limit + self.spread * size.clamp(min=expected.square().mean().sqrt().item())
        return limit


def shown(value: float) -> str:
    """A number as a message shows it: an integer with all of its digits."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def unit_roundoff(dtype: torch.dtype) -> float:
    """Half the distance from 1 to the next larger number of a floating dtype."""
    return torch.finfo(dtype).eps / 2


def tolerance_for(
    dtype: torch.dtype, accumulation: int = 1, rtol: float | None = None, atol: float | None = None
) -> Tolerance:
    """The tolerance for elements of `dtype` that each sum `accumulation` terms: the rule at the top of this file.

    Integer and boolean results must be equal. Raises ValueError if accumulation < 1 or a tolerance is negative or NaN.
    """
    if not accumulation >= 1:
        raise ValueError(f"accumulation must be the number of terms summed per element, 1 or more; got {accumulation}")
    for label, given in (("rtol", rtol), ("atol", atol)):
        if given is not None and not given >= 0:
            raise ValueError(f"{label} must be 0 or more; got {given}")
    if rtol is not None or atol is not None:
        rtol, atol = rtol or 0.0, atol or 0.0
        if rtol == atol == 0:
            return Tolerance(0.0, 0.0, 0.0, "nothing: the values must be equal")
        return Tolerance(rtol, atol, 0.0, f"{atol:.2g} + {rtol:.2g} * |expected|, as given")
    if not dtype.is_floating_point:
        return Tolerance(0.0, 0.0, 0.0, "none: integers must be equal")
    short = str(dtype).removeprefix("torch.")
    rtol = SAFETY * unit_roundoff(dtype)
    smallest = torch.finfo(dtype).tiny * torch.finfo(dtype).eps  # the spacing of subnormal numbers
    text = f"{rtol:.2g} * |expected|, {SAFETY:.0f} roundings in {short}"
    if accumulation == 1:
        return Tolerance(rtol, smallest, 0.0, text)
    wide = torch.float32 if dtype in NARROW else dtype
    spread = SAFETY * math.sqrt(accumulation) * unit_roundoff(wide)
    text += f", + {spread:.2g} * max(|expected|, rms) for sums of {accumulation:,}"
    return Tolerance(rtol, smallest, spread, text)


def assert_close(
    actual: torch.Tensor,
    expected: torch.Tensor,
    *,
    accumulation: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
    name: str = "actual",
    inputs: tuple[torch.Tensor, ...] = (),
    poison: int | None = None,
) -> CheckResult:
    """Compare two tensors of one shape; raise CheckFailed where they differ by more than rounding explains.

    `expected` may have a wider dtype (ideally float64) and be on another device. NaN is accepted only where NaN is
    expected, an infinity only where it is expected or `actual.dtype` overflows. `inputs` and `poison` (the bits that
    filled the memory before the run) only improve the hint.
    """
    if not isinstance(actual, torch.Tensor):
        raise CheckFailed(f"{name}: expected a tensor, got {type(actual).__name__}")
    if actual.shape != expected.shape:
        raise CheckFailed(f"{name}: wrong shape: expected {list(expected.shape)}, got {list(actual.shape)}")
    tolerance = tolerance_for(actual.dtype, accumulation, rtol, atol)
    exact = not (actual.is_floating_point() or expected.is_floating_point())
    compute = torch.int64 if exact else torch.float64
    rounded = expected.detach().to(actual.device, actual.dtype).flatten()  # an expected 1e39 is inf in float32
    want = expected.detach().to(actual.device, compute).flatten()
    raw = actual.detach().flatten()
    got = raw.to(compute)

    error = (got - want).abs()
    if exact:
        right = got == want
    else:
        allowed = tolerance.allowed(torch.where(want.isfinite(), want, 0.0))
        # Every comparison with NaN is false: written this way, NaN counts as wrong.
        right = (error <= allowed) | (raw == rounded) | (got.isnan() & want.isnan())
    if bool(right.all()):
        known = error[error.isfinite()]
        worst, once = known.max().item() if known.numel() else 0.0, bool((raw == rounded).all())
        return CheckResult(name, actual.numel(), worst, tolerance.text, once)
    failed = CheckFailed(_report(name, actual.shape, raw, rounded, error, right, tolerance.text, inputs, poison))
    failed.index, failed.shape = _index(int((~right).nonzero()[0]), actual.shape), tuple(actual.shape)
    failed.right = right
    raise failed


def _index(i: int, shape: torch.Size) -> tuple[int, ...]:
    """The row-major index of element i. (torch.unravel_index imports sympy, which takes a third of a second.)"""
    return tuple(map(int, np.unravel_index(i, shape)))


def _report(name, shape, got, want, error, right, tolerance, inputs, poison) -> str:
    """The message for a failed comparison; all tensors flat."""
    wrong = (~right).nonzero().flatten()
    first = wrong[0].item()
    worst = wrong[torch.nan_to_num(error[wrong].double(), nan=math.inf).argmax()].item()

    def line(label: str, i: int) -> str:
        where = ", ".join(map(str, _index(i, shape)))
        return f"  {label:<10} [{where}]: expected {shown(want[i].item())}, got {shown(got[i].item())}"

    lines = [
        f"{name}: {_how_many(len(wrong), got.numel())} wrong",
        line("first", first),
        *([line("worst", worst)] if worst != first else []),
        f"  {'allowed':<10} {tolerance}",
    ]
    for hint in hints_for(got, want, wrong, shape, inputs, poison):
        lines += textwrap.wrap(hint, 100, initial_indent=f"  {'hint':<10} ", subsequent_indent=" " * 13)
    return "\n".join(lines)


def _how_many(wrong: int, elements: int) -> str:
    if elements == 1:
        return "the only element is"
    return f"{wrong:,} of {elements:,} elements {'is' if wrong == 1 else 'are'}"
