"""Tensors too large to compute whole: their first and last elements, filled, cut out and compared.

A dimension of more than LONG elements is cut to its first and its last `edge` elements; a shorter one stays whole. In
what remains, an operator whose results do not depend on the middle, which holds zeros, has its reference as usual.
"""

from collections.abc import Sequence
from itertools import product

import torch

from helpers.checking.compare import CheckFailed, tolerance_for

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


def assert_ends_close(
    actual: torch.Tensor,
    expected: torch.Tensor,
    shape: Sequence[int],
    *,
    edge: int,
    sure: tuple[int, ...],
    name: str = "actual",
    **tolerance,
) -> None:
    """Compares two tensors of ends; raises CheckFailed with the index of the first wrong element.

    actual     `ends(x, edge)` of a tensor x of `shape`
    sure       for each dimension, how many elements must be right from the first one on, and up to the last one. The
               others may also be 0, which is how memory that nothing has written reads
    tolerance  accumulation, rtol, atol: as in assert_close
    """
    got = actual.double()
    if got.shape != expected.shape:
        raise CheckFailed(f"{name}: wrong shape: got {list(shape)}")
    want = expected.double()
    close = (got - want).abs() <= tolerance_for(actual.dtype, **tolerance).allowed(want)
    right = torch.where(want.isinf(), got == want, close)
    surely = torch.zeros_like(right)
    surely[tuple(slice(None, count) for count in sure)] = True
    surely[tuple(slice(-count, None) for count in sure)] = True
    wrong = (~right & (surely | (got != 0))).nonzero()
    if len(wrong):
        at = tuple(wrong[0].tolist())
        index = [_index(i, size, edge) for i, size in zip(at, shape, strict=True)]
        where = ", ".join(f"{i:,}" for i in index)
        found = "was not written" if got[at] == 0 else f"is {got[at].item():.6g}"
        raise CheckFailed(f"{name}: element [{where}] {found}, expected {want[at].item():.6g}")


def _parts(size: int, edge: int) -> list[tuple[int, int]]:
    """What is kept of a dimension: where each part begins, and its length."""
    return [(0, edge), (size - edge, edge)] if size > LONG else [(0, size)]


def _index(i: int, size: int, edge: int) -> int:
    """The index in a dimension of what has index i in its ends."""
    return i + size - 2 * edge if size > LONG and i >= edge else i
