"""fused_muladd and its wrong versions, beyond the contract."""

from fractions import Fraction

import pytest
import torch
from inputs import FLOATING, randn

import helpers
from helpers.ladder.checking.checker import CheckFailed, check


def muladd(a, b, c):
    return a * b + c


@pytest.mark.parametrize("dtype", FLOATING)
def test_every_length_of_tail_and_every_alignment(ops, dtype):
    a, b, c = randn(3, 80, dtype=dtype)
    # In float64 the reference itself rounds twice, which is not small where product and sum cancel.
    allowed = {"rtol": 0.0, "atol": 1e-14} if dtype == torch.float64 else {"accumulation": 2}
    for size in range(1, 20):
        for first, second in ((0, 0), (1, 0), (0, 3), (1, 1), (8, 8)):
            inputs = a[first : first + size], b[second : second + size], c[:size]
            check(ops.fused_muladd, *inputs, reference=muladd, **allowed)
            check(ops.fused_muladd_backward, *inputs, reference=lambda g, a, b: (g * b, g * a))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_it_rounds_once(ops, dtype):
    a, b, c = randn(3, 1000, dtype=dtype)
    c = -a * b + c * torch.finfo(dtype).eps  # the sum leaves only the product's rounding error
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in rows]
    want = torch.tensor([float(x) for x in exact], dtype=torch.float64).to(helpers.device, dtype)
    assert torch.equal(ops.fused_muladd(a, b, c), want)
    assert not torch.equal(muladd(a, b, c), want)  # two roundings differ


def test_halves_are_computed_in_float(ops):
    a = torch.full((5,), 256.0, dtype=torch.float16, device=helpers.device)
    c = torch.full_like(a, -40_000.0)
    assert ops.fused_muladd(a, a, c).tolist() == [25_536.0] * 5
    assert muladd(a, a, c).isinf().all()


def test_backward_swaps_neither_inputs_nor_outputs(ops):
    grad, a, b = (torch.tensor([x], device=helpers.device) for x in (2.0, 3.0, 5.0))
    assert [x.item() for x in ops.fused_muladd_backward(grad, a, b)] == [10.0, 6.0]


def test_a_forgotten_tail_shows_at_odd_sizes_only(wrong):
    inputs = randn(3, 1024)
    check(wrong.muladd_no_tail, *inputs, reference=muladd, accumulation=2)
    with pytest.raises(CheckFailed, match=r"3 of 1,023 elements are wrong\n  first +\[1020\]: .* got nan"):
        check(wrong.muladd_no_tail, *(x[:1023] for x in inputs), reference=muladd, accumulation=2)


def test_ignored_strides_give_the_original_for_its_transpose(wrong):
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=helpers.device)
    assert torch.equal(wrong.muladd_any_layout(table.t(), torch.ones_like(table), torch.zeros_like(table)), table)
