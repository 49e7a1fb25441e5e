"""bias_gelu, its variants and its wrong versions, beyond the contract."""

import itertools

import pytest
import torch
from inputs import FLOATING, randn

import helpers
from helpers.ladder.catalogue.bias_gelu import forward as bias_gelu_reference
from helpers.ladder.catalogue.bias_gelu import gradients as bias_gelu_gradients
from helpers.ladder.catalogue.bias_gelu import slope as gelu_slope
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.checking.checker import CheckFailed, assert_close, check
from helpers.ladder.checking.compare import unit_roundoff
from helpers.ladder.pytorch.operators import gelu_curvature, library

pytestmark = pytest.mark.slow
WRONG = "bias_gelu_half"
HALVES = (torch.float16, torch.bfloat16)


@pytest.fixture(scope="module")
def forwards(ops):
    return {
        "simple": ops.bias_gelu_simple,
        "pairs": library("bias_gelu_half", "bias_gelu_half.cu").bias_gelu_pairs,
        "float4": library("bias_gelu_float4", "bias_gelu_float4.cu").bias_gelu,
    }


@pytest.fixture(scope="module")
def backwards(ops):
    float4 = library("bias_gelu_float4", "bias_gelu_float4.cu")
    return {"simple": ops.bias_gelu_backward_simple, "float4": float4.bias_gelu_backward}


def ulps(actual, expected):
    """Distance in ULPs between `actual`, of a 16-bit type, and `expected`, rounded to it. NaN equals NaN."""

    def place(t):
        bits = t.view(torch.int16).int()
        return torch.where(bits < 0, -(bits & 0x7FFF), bits)

    rounded = expected.to(actual.dtype)
    return torch.where(actual.isnan() & rounded.isnan(), 0, (place(actual) - place(rounded)).abs())


def allowed(dtype):
    """Four roundings of a 16-bit result or of 1 in float32; eight of a wider one, whose reference rounds as often.

    x + bias is rounded, which moves the result by |z gelu'(z)| roundings: less than 1.2 of its own where z > 0, and
    less than 0.2 of 1 where z < 0 and the result is small.
    """
    if dtype in HALVES:
        return {"rtol": 4 * unit_roundoff(dtype), "atol": 4 * unit_roundoff(torch.float32)}
    return dict.fromkeys(("rtol", "atol"), 8 * unit_roundoff(dtype))


def every_half(dtype):
    """All 65,536 bit patterns."""
    return torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype).to(helpers.device)


# -- the formulas ------------------------------------------------------------------------------------------------------


def test_the_reference_has_the_derivatives_of_pytorch():
    x = torch.linspace(-6, 6, 101, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(bias_gelu_reference(x, 0).sum(), x, create_graph=True)
    torch.testing.assert_close(slope, gelu_slope(x))
    (curvature,) = torch.autograd.grad(gelu_slope(x).sum(), x)
    torch.testing.assert_close(curvature, gelu_curvature(x))
    assert not torch.allclose(slope, gelu_slope(x + 1e-3))


# -- shapes and places in memory ---------------------------------------------------------------------------------------

SHAPES = [(3, 1), (1, 7), (5, 8), (37, 33), (2, 3, 40), (9,), (70, 257), (1, 4096), (300, 16), (1, 1)]


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SHAPES)
def test_any_number_of_rows_and_columns(forwards, backwards, shape, dtype):
    grad, x, bias = (randn(*s, dtype=dtype, seed=i) for i, s in enumerate((shape, shape, shape[-1:])))
    for function in forwards.values():
        check(function, x, bias, reference=bias_gelu_reference, **allowed(x.dtype))
    for function in backwards.values():
        check(function, grad, x, bias, reference=bias_gelu_gradients, accumulation=max(8, x.numel() // shape[-1]))


@pytest.mark.parametrize("dtype", FLOATING)
def test_any_place_in_memory(forwards, backwards, dtype):
    """Rows of whole vectors, but the input begins between two vectors; the memory around it holds NaN."""
    for skips in [*itertools.product((0, 1, 3), repeat=3), (8, 8, 8)]:
        views = []
        for seed, (skip, shape) in enumerate(zip(skips, ((5, 16), (5, 16), (16,)), strict=True)):
            room = torch.full((200,), float("nan"), dtype=dtype, device=helpers.device)
            views.append(room[skip:][: torch.Size(shape).numel()].view(shape).copy_(randn(*shape, seed=seed)))
        for function in forwards.values():
            check(function, *views[1:], reference=bias_gelu_reference, **allowed(dtype))
        for function in backwards.values():
            check(function, *views, reference=bias_gelu_gradients, accumulation=5)


def test_more_rows_than_a_launch_has_blocks_side_by_side(forwards, backwards):
    """One column of 2^18 rows: strips of one vector, and bands of many rows."""
    x, bias = randn(2**18, 1), randn(1)
    check(forwards["float4"], x, bias, reference=bias_gelu_reference, **allowed(x.dtype))
    check(backwards["float4"], randn(2**18, 1, seed=1), x, bias, reference=bias_gelu_gradients, accumulation=2**18)


@pytest.mark.parametrize("dtype", FLOATING)
def test_large_inputs_have_several_rows_per_thread(forwards, dtype):
    rows, columns = 1024 * (16 // dtype.itemsize) + 3, 1024  # 2^20 vectors, and a few that fill no block
    x, bias = randn(rows, columns, dtype=dtype), randn(columns, dtype=dtype, seed=1)
    check(forwards["float4"], x, bias, reference=bias_gelu_reference, **allowed(x.dtype))


def test_no_rows_or_no_columns(forwards, backwards):
    for shape in ((0, 5), (5, 0), (0,), (2, 0, 3)):
        x, bias = randn(*shape), randn(shape[-1])
        for function in forwards.values():
            assert function(x, bias).shape == x.shape
        for function in backwards.values():
            grad_x, grad_bias = function(x, x, bias)
            assert grad_x.shape == x.shape
            assert grad_bias.tolist() == [0.0] * shape[-1]  # an empty sum


@pytest.mark.parametrize(
    ("x", "bias", "message"),
    [
        ((4, 5), (4,), "bias must have one element for each of the 5 columns of x, got shape \\[4\\]"),
        ((4, 5), (1, 5), "bias must have one element for each of the 5 columns"),
        ((), (1,), "x must have a dimension for the columns"),
    ],
)
def test_a_bias_that_does_not_fit_is_refused(forwards, x, bias, message):
    for function in forwards.values():
        with pytest.raises(RuntimeError, match=message):
            function(randn(*x), randn(*bias))


def test_a_gradient_of_another_shape_is_refused(backwards):
    for function in backwards.values():
        with pytest.raises(RuntimeError, match="grad and x must have the same shape"):
            function(randn(5, 4), randn(4, 5), randn(5))


# -- accuracy ----------------------------------------------------------------------------------------------------------


def by_sigmoid(z):
    return z * torch.sigmoid(2 * (2 / torch.pi) ** 0.5 * (z + 0.044715 * z**3))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("bias", [0.0, 0.3, -1.7])
def test_every_half_is_within_one_ulp(forwards, dtype, bias):
    x = every_half(dtype).view(64, 1024)
    shift = torch.full((1024,), bias, dtype=dtype, device=helpers.device)
    expected = by_sigmoid(x.double() + shift.double())
    for name, function in forwards.items():
        off = ulps(function(x, shift), expected)
        assert off.max().item() <= 1, f"{name}: {off.max().item()} ULPs at x = {x.view(-1)[off.argmax()].item()}"


def test_an_exponential_in_half_overflows(wrong):
    x = every_half(torch.float16).view(64, 1024)
    out = wrong.bias_gelu_in_half(x, torch.zeros(1024, dtype=torch.float16, device=helpers.device))
    broken = x[out.isnan() & ~x.isnan()]
    assert 4.0 < broken[broken.isfinite()].abs().min().item() < 4.1
    assert ulps(out, bias_gelu_reference(x.double(), 0)).max().item() > 1


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_float32_is_as_exact_as_eager(forwards, scale):
    x, bias = randn(1000, 500) * scale, randn(500, seed=1)
    exact = bias_gelu_reference(x.double(), bias.double())
    eager = (bias_gelu_reference(x, bias) - exact).abs().max().item()
    for function in forwards.values():
        assert (function(x, bias) - exact).abs().max().item() <= 1.5 * eager


def test_where_x_is_negative_no_digits_are_lost(forwards):
    """1 + tanh(u) cancels there, 1 / (1 + exp(-2u)) does not."""
    flags = ("-DLADDER_SIGMOID=sigmoid_by_tanhf",)
    file = extension("bias_gelu_tanhf", ("bias_gelu_half.cu",), flags=flags)
    x = torch.linspace(-5, -4, 1001, device=helpers.device)
    bias = torch.zeros(1001, device=helpers.device)
    exact = by_sigmoid(x.double())

    def relative_error(function):
        return ((function(x, bias).double() - exact) / exact).abs().max().item()

    assert relative_error(forwards["pairs"]) < 1e-5
    assert relative_error(file.bias_gelu_pairs) > 1e-3


def test_sums_of_halves_are_kept_in_float(backwards, wrong):
    """In half a sum of ones stops at 2,048: the next value is 2,050, and 2,049 is rounded back."""
    rows = 5000
    ones = torch.ones(rows, 3, dtype=torch.float16, device=helpers.device)
    assert wrong.column_sum_in_half(ones).tolist() == [2048.0] * 3
    x, bias = torch.full_like(ones, 10.0), torch.zeros(3, dtype=torch.float16, device=helpers.device)
    for function in backwards.values():
        assert function(ones, x, bias)[1].tolist() == [float(rows)] * 3  # the slope at 10 is 1


@pytest.mark.parametrize("dtype", FLOATING)
def test_grad_bias_of_many_rows(backwards, dtype):
    grad, x, bias = randn(5003, 24, dtype=dtype), randn(5003, 24, dtype=dtype, seed=1), randn(24, dtype=dtype, seed=2)
    for function in backwards.values():
        check(function, grad, x, bias, reference=bias_gelu_gradients, accumulation=5003)
        without_one = function(grad[1:], x[1:], bias)[1]
        exact = bias_gelu_gradients(grad.double(), x.double(), bias.double())[1]
        with pytest.raises(CheckFailed):  # a missing row is found
            assert_close(without_one, exact, accumulation=5003)


# -- the wrong versions ------------------------------------------------------------------------------------------------


def traced(file):
    return extension(f"{file.replace('/', '_')}_traced", (f"{file}.cu",), traced=True)


def test_a_sum_without_atomics_is_a_race():
    ops = traced("wrong/bias_gelu")
    args = randn(64, 8).cpu(), randn(64, 8, seed=1).cpu(), randn(8, seed=2).cpu()
    assert [fault.kind for fault in helpers.xray(ops.bias_gelu_backward_racing, *args).faults] == ["race"]
    report = helpers.xray(ops.bias_gelu_backward_atomic, *args)
    assert report.faults == []
    torch.testing.assert_close(list(report.result), list(bias_gelu_gradients(*args)))


def test_a_float4_past_the_end_and_one_between_two():
    ops = traced("wrong/bias_gelu_float4")
    even, odd = randn(4, 8).cpu(), randn(3, 5).cpu()
    for function in (ops.bias_gelu_past_end, ops.bias_gelu_truncated):
        report = helpers.xray(function, even, even[0])
        assert report.faults == []
        torch.testing.assert_close(report.result, bias_gelu_reference(even, even[0]))
        inside = randn(33).cpu()[1:].view(4, 8)
        assert [fault.kind for fault in helpers.xray(function, inside, inside[0]).faults] == ["misaligned"]
    assert {fault.kind for fault in helpers.xray(ops.bias_gelu_past_end, odd, odd[0]).faults} == {"out-of-bounds"}
    assert helpers.xray(ops.bias_gelu_truncated, odd, odd[0]).faults == []  # elements are missing, but no fault
    with pytest.raises(CheckFailed):
        check(lambda x, b: ops.bias_gelu_truncated(x, b), odd, odd[0], reference=bias_gelu_reference)


@pytest.mark.parametrize(
    ("file", "functions"),
    [
        ("bias_gelu", ("bias_gelu_simple", "bias_gelu_backward_simple")),
        ("bias_gelu_half", ("bias_gelu_pairs",)),
        ("bias_gelu_float4", ("bias_gelu", "bias_gelu_backward")),
    ],
)
def test_the_right_versions_have_no_fault(file, functions):
    ops = traced(file)
    for function in functions:
        for shape, skip in (((37, 64), 0), ((37, 33), 0), ((5, 64), 1), ((300, 8), 0), ((1, 1), 0)):
            for dtype in (torch.float32, torch.float16):
                x = randn(torch.Size(shape).numel() + skip, dtype=dtype).cpu()[skip:].view(shape)
                inputs = [x, randn(shape[1], dtype=dtype).cpu()]
                inputs = [x.clone(), *inputs] if "backward" in function else inputs
                report = helpers.xray(getattr(ops, function), *inputs)
                assert report.faults == [], f"{function}, {shape}, {dtype}: {report.faults[0]}"
                assert report.launches
