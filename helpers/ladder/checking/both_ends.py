"""Compares what was computed of tensors too large to compute whole (kernel_xray.runtime.far): at both ends."""

from collections.abc import Callable, Mapping, Sequence

import torch

from helpers.ladder.checking.compare import CheckFailed, tolerance_for
from kernel_xray.runtime import far
from kernel_xray.runtime.ends import LONG


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


def _index(i: int, size: int, edge: int) -> int:
    """The index in a dimension of what has index i in its ends."""
    return i + size - 2 * edge if size > LONG and i >= edge else i


def compare(
    computed: far.Computed,
    inputs: Sequence,
    outputs: Mapping[str, torch.Tensor] | None = None,
    *,
    reference: Callable,
    name: str,
    edge: int = 512,
    sure: tuple[int, ...] = (256,),
    width: int = 2,
    **tolerance,
) -> None:
    """Compares what `far.compute` gave, for the same inputs, outputs, edge and width, with `reference`.

    reference  gets the inputs' ends (kernel_xray.runtime.ends) as float64 and returns those of the results, None for
               one that cannot be compared
    sure, tolerance  of assert_ends_close

    Raises CheckFailed, and ValueError for a call that left no block out.
    """
    if not computed.left_out:
        raise ValueError(f"{name}: all blocks ran; a far case needs more than {2 * width} of them")
    count = len(computed.ends)
    labels = [f"{name}, {label}" for label in outputs or ()] or [f"{name}, result {i}" for i in range(count)]
    wanted = far.as_list(reference(*far.wide(inputs, edge, width)))
    for label, got, shape, want in zip(
        labels if count > 1 else [name], computed.ends, computed.shapes, wanted, strict=True
    ):
        if want is not None:
            assert_ends_close(got, want, shape, edge=edge, sure=sure[: len(shape)], name=label, **tolerance)


def check_far(function: Callable, inputs: Sequence, *, reference: Callable, name: str, **options) -> far.Computed:
    """`far.compute`, then `compare`, whose `options` may include `edge` and `width`; returns what was computed."""
    computed = far.compute(function, inputs, **{key: options[key] for key in ("edge", "width") if key in options})
    compare(computed, inputs, reference=reference, name=name, **options)
    return computed
