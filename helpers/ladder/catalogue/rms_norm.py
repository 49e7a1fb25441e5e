"""Lesson 07: RMSNorm over the last dimension, and its backward with the gradient of the weight.

PyTorch's own takes `eps` as an argument; here it is EPS, the operator's default.
"""

import functools
import importlib
from collections.abc import Callable

import torch

from helpers.ladder.catalogue.bias_gelu import at_size, rows
from helpers.ladder.catalogue.entry import (
    FLOATING,
    MEASURED,
    ONE_KERNEL,
    THREE_STREAMS,
    Kernel,
    Launch,
    Operator,
    elements,
    row,
    uniform,
    whole,
)

EPS = 1e-6
MATRICES = ((16384, 4096), (8192, 8192))
Pair = tuple[torch.Tensor, torch.Tensor]


def forward(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, weight.shape, weight, EPS)


def gradients(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> Pair:
    """What autograd computes for `forward`: for x and for weight."""
    if not weight.numel():
        return torch.zeros_like(x), torch.zeros_like(weight)
    r = (x * x).mean(-1, keepdim=True).add(EPS).rsqrt()
    weighted = grad * weight
    grad_x = r * weighted - x * r**3 * (weighted * x).mean(-1, keepdim=True)
    return grad_x, (grad * x * r).reshape(-1, weight.numel()).sum(0)


def quack() -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    function = importlib.import_module("quack.rmsnorm").rmsnorm_fwd
    return lambda x, weight: function(x, weight, eps=EPS)[0]


on_matrices = functools.partial(
    Operator, dtypes=MEASURED, shapes=MATRICES, at_size=at_size, spread=2.0, sample=uniform(2), peer_sums=4
)

RMS_NORM = on_matrices(
    name="rms_norm",
    arguments={"x": whole, "weight": row},
    reference=forward,
    peers={"quack": quack},
    flops=lambda shape: 4 * elements(shape),
    accumulation=lambda shape: 32,  # squares that a lane adds up one after the other
    above_copy=ONE_KERNEL,
    kernels=(
        Kernel(
            name="rms_norm",
            files=("rms_norm.cu",),
            dtypes=FLOATING,
            slow_to_build=True,
            backward="rms_norm_backward",
            launches=(  # the columns decide which kernel runs, and its threads per row
                Launch((70, 1000), "float32"),
                Launch((70, 1000), "float16"),
                Launch((33, 1001), "float32"),  # with single elements before and after the vectors
                Launch((3, 300_000), "float32", kernel="rms_norm_long_kernel"),
                Launch((64, 20001), "float32", kernel="shift_kernel", note="shifted weights"),
            ),
        ),
    ),
)

RMS_NORM_BACKWARD = on_matrices(
    name="rms_norm_backward",
    arguments={"grad": whole, "x": whole, "weight": row},
    results=(whole, row),
    reference=gradients,
    flops=lambda shape: 14 * elements(shape),
    accumulation=lambda shape: max(32, rows(shape)),
    sizes=(0, 31, 32, 33, 255, 256, 257, 1001, 3067, 100_003),  # in a row of one, the terms of grad_x cancel
    above_copy=THREE_STREAMS,
    kernels=(
        Kernel(
            name="rms_norm_backward",
            files=("rms_norm_backward.cu",),
            dtypes=FLOATING,
            slow_to_build=True,
            launches=(
                Launch((60, 1000), "float32"),
                Launch((60, 1000), "float16"),
                Launch((3, 300_000), "float32", kernel="rms_norm_backward_long_kernel"),
                Launch((3, 300_000), "float32", kernel="weight_kernel", note="weight"),
            ),
        ),
    ),
)

OPERATORS = (RMS_NORM, RMS_NORM_BACKWARD)
