"""The checks of lesson 04: forward and backward of an activation, and sums of columns."""

from collections.abc import Iterator

import torch

from helpers.practice.asked import Launched, each, each_element
from helpers.practice.calls import Calls, on_vectors
from helpers.practice.case_inputs import EXACT, INF, NAN, ROWS_AND_COLUMNS, WIDE, normal, roundings
from helpers.practice.cases import Case, Check, Far

BIAS_RELU = Calls(
    "grad[rows, columns], x[rows, columns], bias[columns] -> grad_x[rows, columns]",
    label=ROWS_AND_COLUMNS,
    tolerance=EXACT,
)


def bias_relu_backward_cases() -> Iterator[Case]:
    yield from BIAS_RELU.at(
        (0, 0), (0, 5), (3, 0), (1, 1), (3, 5), (5, 3), (16, 16), (1, 257), (257, 1), (255, 33), (70_003, 1),
        (2, 40_003),
    )  # fmt: skip
    grad = torch.tensor([[1.5, -2.0, INF, -INF, NAN]])
    for x, bias in ((1.0, -1.0), (-1.0, 0.5), (1.0, -0.5), (INF, -INF), (NAN, 1.0)):
        label = f"x = {x} and bias = {bias} everywhere, grad = {grad[0].tolist()}"
        yield BIAS_RELU.given(label, grad, torch.full((1, 5), x), torch.full((5,), bias))


def bias_relu_backward_far(rows: int) -> Case:
    return BIAS_RELU.far(3, WIDE, sure=(1, 64)) if rows == WIDE else BIAS_RELU.far(rows, 5, sure=(4, 5))


SOFTPLUS = Calls(
    "grad[n], x[n] -> grad_x[n]",
    tolerance=roundings(torch.float32, 16) | {"atol": 1e-37},  # values below 1.2e-38 may be flushed to 0
    values={"x": lambda x: 5 * x},
)
TAILS = torch.tensor([-100.0, -87.0, -20.0, 0.0, 20.0, 87.0, 100.0, NAN])

GELU = Calls(
    "grad[n], x[n] -> out[n], grad_x[n]",
    tolerance=roundings(torch.float32, 128, absolute=16),
    values={"x": lambda x: 2 * x},
)


def at_ones(*values: float) -> Case:
    """A case with gradients of 1, for values of which GELU cancels nothing."""
    x = torch.tensor(values)
    return GELU.given(f"x = {x.tolist()}", torch.ones_like(x), x, **roundings(torch.float32, 128))


def gelu_erf_reference(grad: torch.Tensor, x: torch.Tensor) -> tuple:
    x = x.requires_grad_()
    out = x * torch.special.erfc(-x * 0.5**0.5) / 2
    return out.detach(), torch.autograd.grad(out, x, grad)[0]


SUMS = Calls("x[rows, columns] -> out[columns]", label=ROWS_AND_COLUMNS, sums="rows")


def column_sum_cases() -> Iterator[Case]:
    yield from SUMS.at((0, 0), (3, 0), (0, 5), (1, 1), (7, 31), (8, 32), (9, 33), (257, 3))
    x = normal(9, 33)
    x[8, 0], x[3, 7], x[0, 32] = NAN, INF, -INF
    yield SUMS.given("9 rows, 33 columns, NaN at [8, 0], inf at [3, 7], -inf at [0, 32]", x)
    yield from SUMS.at((1000, 65), (60, 70), (33_000, 1), (3, 40_003))


def column_sum_asked(x: torch.Tensor) -> list[Launched]:
    rows, columns = x.shape
    sharing = -(-rows // -(-rows // 8)) if rows else 0  # of eight threads, if each takes neighbouring rows
    return [Launched(loading=sharing * columns, atomics=False)] if columns else []


CHECKS = {
    "bias_relu_backward": Check(
        lambda grad, x, bias: torch.where(x + bias <= 0, 0.0, grad),
        bias_relu_backward_cases,
        far=Far(bias_relu_backward_far, 2**34 + 7, least=2**19 + 7, more=(WIDE,)),
    ),
    "softplus_backward": on_vectors(
        lambda grad, x: grad * x.sigmoid(),
        SOFTPLUS,
        SOFTPLUS.given(f"x = {TAILS.tolist()}", torch.full_like(TAILS, -1.5), TAILS),
        asked=each_element,
        rounds=True,
    ),
    "gelu_erf": on_vectors(
        gelu_erf_reference,
        GELU,
        at_ones(-3.0, -4.0, -5.0, -6.5, -8.0),
        at_ones(12.0, 200.0, 1e30, NAN),
        asked=lambda grad, x: 2 * each(len(x)),
        rounds=True,
    ),
    "column_sum": Check(
        lambda x: x.sum(0),
        column_sum_cases,
        asked=column_sum_asked,
        rounds=True,
        repeatable=True,
        far=Far(lambda columns: SUMS.far(9, columns, edge=64, sure=(32,)), 2**34 + 7, least=2**19 + 7),
    ),
}
