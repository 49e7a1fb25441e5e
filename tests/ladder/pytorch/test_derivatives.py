"""Derivatives of a registered operator in every way that PyTorch asks for them, beyond the contract."""

import pytest
import torch
from torch.autograd import forward_ad

import helpers
from helpers.ladder.pytorch import operators


def test_a_tangent_beside_an_infinity_is_not_nan():
    finite, infinite = torch.ones(2, device=helpers.device), torch.full((2,), torch.inf, device=helpers.device)
    for op in (operators.elementwise_mult(), torch.mul):
        _, tangent = torch.func.jvp(lambda a, op=op: op(a, finite), (infinite,), (finite,))
        assert tangent.tolist() == [1, 1]


def test_an_output_that_no_tangent_reaches_has_a_tangent_of_zeros():
    grad, a, b = torch.ones(3, 2, device=helpers.device).unbind(0)
    with forward_ad.dual_level():
        grad_a, grad_b = operators.fused_muladd_backward()(grad, a, forward_ad.make_dual(b, b))
        assert forward_ad.unpack_dual(grad_a).tangent.tolist() == [1, 1]
        assert forward_ad.unpack_dual(grad_b).tangent.tolist() == [0, 0]


def test_forward_only_operators_work_where_no_derivative_is_asked_for():
    ones = torch.ones(2, device=helpers.device, requires_grad=True)
    add = operators.vector_add()
    assert add(ones, ones).tolist() == [2, 2]
    with torch.no_grad(), forward_ad.dual_level():
        assert add(ones, ones).tolist() == [2, 2]
    assert torch.compile(add, backend="aot_eager")(ones.detach(), ones.detach()).tolist() == [2, 2]


def test_a_forward_only_operator_names_the_argument_at_fault():
    ones = torch.ones(2, device=helpers.device)
    leaf = ones.clone().requires_grad_()
    said = r"^vector_add is forward only: b must have neither requires_grad nor a tangent, got one that has; pass b\."
    with pytest.raises(NotImplementedError, match=said):
        operators.vector_add()(ones, leaf).sum().backward()
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=said):
        operators.vector_add()(ones, forward_ad.make_dual(ones, ones))


def test_a_compiled_function_has_the_same_tangents():
    a, b, c = torch.randn(3, 5, device=helpers.device).unbind(0)
    muladd = operators.fused_muladd()

    def tangent(a):
        return torch.func.jvp(lambda a: muladd(a, b, c), (a,), (c,))[1]

    compiled = torch.compile(tangent, backend="aot_eager")
    torch.testing.assert_close(compiled(a), b * c)
    torch.testing.assert_close(tangent(a), b * c)
