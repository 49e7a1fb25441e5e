"""linear_gelu: as exact as PyTorch's own, with every kind of derivative, and nothing saved that nobody needs."""

import pytest
import torch
from test_hopper import for_hopper
from torch.library import opcheck

import helpers
from helpers.ladder.pytorch import fused_linear

pytestmark = [pytest.mark.slow, for_hopper]


def arguments(m=130, n=264, k=72):
    generator = torch.Generator().manual_seed(0)
    shapes, scales = ((m, k), (k, n), (n,)), (1, k**-0.5, 1)
    made = (torch.randn(s, generator=generator) * scale for s, scale in zip(shapes, scales, strict=True))
    return [x.to(helpers.device, torch.bfloat16).requires_grad_() for x in made]


def plain(a, b, bias):
    return torch.nn.functional.gelu(a @ b + bias, approximate="tanh")


def with_gradients(function, given, weights, dtype=torch.bfloat16):
    """The result of the function, and the gradients of its product with the weights."""
    given = [x.detach().to(dtype).requires_grad_() for x in given]
    result = function(*given)
    return result, *torch.autograd.grad(result, given, weights.to(dtype))


def errors(got, exact):
    return [((x.double() - y).norm() / y.norm()).item() for x, y in zip(got, exact, strict=True)]


@pytest.mark.parametrize("shape", [(130, 264, 72), (256, 512, 320), (1, 8, 8)])
def test_results_and_gradients_are_as_exact_as_pytorchs(shape):
    given = arguments(*shape)
    weights = torch.randn(shape[:2]).to(helpers.device).bfloat16()
    exact = with_gradients(plain, given, weights, torch.float64)
    ours = with_gradients(fused_linear.linear_gelu(), given, weights)
    eager = with_gradients(plain, given, weights)
    for mine, theirs in zip(errors(ours, exact), errors(eager, exact), strict=True):
        assert mine <= 1.2 * theirs + 2**-9


def test_the_sums_are_differentiable_too():
    given = arguments()
    weights = torch.randn(130, 264).to(helpers.device).bfloat16()

    def both(a, b, bias):
        y, sums = fused_linear.matmul_gelu_saving()(a, b, bias)
        return y * sums

    ours = with_gradients(both, given, weights)
    exact = with_gradients(lambda a, b, bias: plain(a, b, bias) * (a @ b), given, weights, torch.float64)
    assert max(errors(ours, exact)) < 2**-6


def test_second_derivatives():
    def of_norm(function, dtype):
        given = [x.detach().to(dtype).requires_grad_() for x in arguments()]
        first = torch.autograd.grad(function(*given).square().mean(), given, create_graph=True)
        return torch.autograd.grad(sum(x.square().sum() for x in first), given)

    ours, exact = of_norm(fused_linear.linear_gelu(), torch.bfloat16), of_norm(plain, torch.float64)
    assert max(errors(ours, exact)) < 2**-5


def test_pytorchs_own_tests_of_operators():
    opcheck(fused_linear.matmul_gelu(), [x.detach() for x in arguments()])
    opcheck(fused_linear.matmul_gelu_saving(), arguments())


def test_compiled_without_breaks():
    given = arguments()
    weights = torch.randn(130, 264).to(helpers.device).bfloat16()
    compiled = torch.compile(fused_linear.linear_gelu(), fullgraph=True, backend="aot_eager")
    got, wanted = (with_gradients(function, given, weights) for function in (compiled, fused_linear.linear_gelu()))
    assert all(map(torch.equal, got, wanted))


def test_without_gradients_nothing_is_saved():
    given = arguments()
    assert fused_linear.linear_gelu()(*given).grad_fn is not None
    assert fused_linear.linear_gelu()(*(x.detach() for x in given)).grad_fn is None
    with torch.no_grad():
        assert fused_linear.linear_gelu()(*given).grad_fn is None
    with pytest.raises(NotImplementedError, match="matmul_cluster_gelu is forward only"):
        fused_linear.matmul_gelu()(*given).sum().backward()
