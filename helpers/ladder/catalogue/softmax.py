"""Lesson 15: softmax over the last dimension."""

import functools
import importlib
from collections.abc import Callable

import torch

from helpers.ladder.catalogue.entry import (
    FLOATING,
    MEASURED,
    ONE_KERNEL,
    Kernel,
    Launch,
    Operator,
    elements,
    uniform,
    whole,
)
from helpers.ladder.catalogue.extensions import triton_function


def exact(x: torch.Tensor) -> torch.Tensor:
    """torch.softmax adds up a row in one chain per lane of a CPU vector. Here the sum is torch.sum's, pairwise."""
    out = torch.softmax(x, -1)
    return out / out.sum(-1, keepdim=True)


def quack() -> Callable[[torch.Tensor], torch.Tensor]:
    return importlib.import_module("quack.softmax").softmax_fwd


SOFTMAX = Operator(
    name="softmax",
    arguments={"x": whole},
    reference=lambda x: torch.softmax(x, -1),
    exact=exact,
    flops=lambda shape: 5 * elements(shape),  # the exponential counted as one
    peers={"triton": functools.partial(triton_function, "softmax_triton", "softmax"), "quack": quack},
    dtypes=MEASURED,
    shapes=((32768, 8192),),
    sweep=((32768, 256), (32768, 1024), (131072, 1023), (32768, 4097), (2670, 50257), (8192, 32768), (2048, 131072)),
    sample=uniform(4),
    accumulation=lambda shape: 32,  # elements that a lane adds up one after the other
    peer_sums=4,
    above_copy=ONE_KERNEL,
    kernels=(
        Kernel(
            name="softmax",
            files=("softmax.cu",),
            dtypes=FLOATING,
            launches=(  # the columns decide which kernel runs, and its threads per row
                Launch((70, 200), "float32"),  # 8 lanes per row
                Launch((70, 1000), "float32"),  # a warp
                Launch((70, 1000), "float16"),  # 16 lanes
                Launch((33, 1001), "float32"),  # a warp, with single elements before and after the vectors
                Launch((9, 5000), "float32"),  # some warps
                Launch((5, 12000), "float32"),  # more of them
                Launch((3, 40000), "bfloat16"),  # a cluster per row
                Launch((3, 300000), "float32", kernel="softmax_long_kernel"),
            ),
        ),
    ),
)

OPERATORS = (SOFTMAX,)
