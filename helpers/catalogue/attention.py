"""Lesson 17: attention, softmax(scale * q @ k^T) @ v with its logsumexp, and the gradients.

The shape is (heads, kv_heads, tokens, d), of a batch of 1: q has `heads` heads, k and v have `kv_heads`.
"""

import math
from collections.abc import Sequence

import torch

from helpers.catalogue.entry import FLOATING, Kernel, Launch, Operator, Shape

Tensors = tuple[torch.Tensor, ...]


def scores(q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float | None) -> torch.Tensor:
    """scale * q @ k^T for each head of q; -inf where a causal mask hides the key."""
    shared = k.repeat_interleave(q.shape[1] // max(1, k.shape[1]), 1)
    products = (q.shape[-1] ** -0.5 if scale is None else scale) * (q @ shared.mT)
    if not causal:
        return products
    return products.masked_fill(
        products.new_ones(products.shape[-2:], dtype=torch.bool).tril().logical_not(), -torch.inf
    )


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None
) -> Tensors:
    """In plain PyTorch, with the whole matrix of scores: the output and the logsumexp of each row."""
    found = scores(q, k, causal, scale)
    shared = v.repeat_interleave(q.shape[1] // max(1, k.shape[1]), 1)
    return found.softmax(-1) @ shared, found.logsumexp(-1)


def flops(shape: Shape) -> int:
    """Two products of tokens x tokens x d for each head, without a mask."""
    heads, _, tokens, d = shape
    return 4 * heads * tokens**2 * d


def queries(shape: Shape) -> Shape:
    return (1, shape[0], *shape[2:])


def keys(shape: Shape) -> Shape:
    return (1, *shape[1:])


def rows(shape: Shape) -> Shape:
    return (1, shape[0], shape[2])


def normal(shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device | str) -> Tensors:
    """Normally distributed arguments, the same at every call."""
    torch.manual_seed(0)
    return tuple(torch.randn(shape, device=device).to(dtype) for shape in shapes)


def at_size(size: int) -> Shape:
    """`size` tokens, or its square root from 100 up; a few columns for few tokens, and otherwise 64."""
    return (2, 1, size if size < 100 else math.isqrt(size), 3 if size < 8 else 64)


ATTENTION = Operator(
    name="attention",
    arguments={"q": queries, "k": keys, "v": keys},
    results=(queries, rows),
    widened=(1,),
    reference=attention,
    flops=flops,
    dtypes=("float16", "bfloat16"),
    sample=normal,
    accumulation=lambda shape: 2**30,  # in 16 bits, probabilities are rounded before they are multiplied by v
    at_size=at_size,
    sizes=(0, 1, 7, 8, 31, 32, 33, 64, 65, 1001),
    spread=1.0,
    kernels=(
        Kernel(
            name="attention",
            files=("attention.cu",),
            dtypes=FLOATING,
            slow_to_build=True,
            launches=(
                Launch((2, 1, 70, 64), "float16"),
                Launch((2, 1, 70, 128), "bfloat16"),
                Launch((2, 1, 33, 64), "float32", kernel="attention_simple_kernel"),
            ),
        ),
    ),
)

OPERATORS = (ATTENTION,)
