"""Tensors too large to compute whole: their first and last elements, filled and cut out.

A dimension of more than LONG elements is cut to its first and its last `edge` elements; a shorter one stays whole. In
what remains, an operator whose results do not depend on the middle, which holds zeros, has its reference as usual.
"""

from itertools import product

import torch

LONG = 60_000  # elements of a dimension; a grid has up to 65,535 blocks in y and z


def ends(x: torch.Tensor, edge: int, dim: int = 0) -> torch.Tensor:
    """A copy of x without the middle of its long dimensions from `dim` on."""
    if dim == x.dim():
        return x
    return torch.cat([ends(x.narrow(dim, *part), edge, dim + 1) for part in _parts(x.shape[dim], edge)], dim)


def fill_ends(x: torch.Tensor, edge: int, seed: int = 0) -> torch.Tensor:
    """Writes normally distributed values to all elements of `ends(x, edge)`, the same at every call; returns x.

    Integers are 0 or more: the distance from 0, rounded down.
    """
    generator = torch.Generator().manual_seed(seed)
    for corner in product(*(_parts(size, edge) for size in x.shape)):
        view = x[tuple(slice(first, first + length) for first, length in corner)]
        values = torch.randn(view.shape, generator=generator)
        view.copy_(values if x.is_floating_point() else values.abs())
    return x


def _parts(size: int, edge: int) -> list[tuple[int, int]]:
    """What is kept of a dimension: where each part begins, and its length."""
    return [(0, edge), (size - edge, edge)] if size > LONG else [(0, size)]
