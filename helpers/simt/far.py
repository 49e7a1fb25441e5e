"""Kernels on tensors of 2^31 to 2^36 elements, in milliseconds: is every index wide enough?

Tensors lie in memory that is only reserved, a page is taken when it is first written, and of each launch only the first
and the last blocks run. Inputs have values at both ends and zeros in between; results are compared at both ends. For
the simulator's fast mode alone, and for kernels in which a thread's work does not grow with the whole tensor.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from helpers.checking.ends import assert_ends_close, ends, fill_ends
from helpers.simt import faults

SUPPORTED = sys.platform == "linux"  # elsewhere addresses may not be reserved so generously


@dataclass
class Window:
    """What `window` gives; `left_out` is known after it."""

    left_out: int = 0  # how many blocks, or clusters, did not run


@contextmanager
def window(width: int = 2) -> Iterator[Window]:
    """Inside the context, of each launch only the first and the last `width` blocks run; new CPU tensors are reserved.

    They begin as zeros, and may be larger than the machine's memory. Cooperative grids and X-rays raise KernelFault.
    """
    module, opened = faults.install(), Window()
    module.use_reserved_allocator(True)
    module.open_window(width)
    try:
        yield opened
    finally:
        opened.left_out = module.close_window()
        module.use_reserved_allocator(False)


def check_far(
    function: Callable,
    inputs: Sequence,
    outputs: Mapping[str, torch.Tensor] | None = None,
    *,
    reference: Callable,
    name: str,
    edge: int = 512,
    sure: tuple[int, ...] = (256,),
    width: int = 2,
    **tolerance,
) -> list[torch.Tensor]:
    """Calls `function(*inputs, *outputs)` in a window; compares its results at both ends with `reference`.

    inputs     those that are meta tensors become reserved ones of their shape, strides and dtype, filled at both ends
    outputs    meta tensors by name, which the function writes; without them, it returns its results
    reference  gets the inputs' ends (helpers.checking.ends) as float64 and returns those of the results, None for one
               that cannot be compared
    edge, sure, tolerance  of assert_ends_close

    Returns the results. Raises CheckFailed; errors of the function pass through. A call that leaves no block out raises
    ValueError.
    """
    with window(width) as opened:
        arguments = [_reserved(x, edge, seed) if _is_meta(x) else x for seed, x in enumerate(inputs)]
        written = {label: _reserved(x, 0) for label, x in (outputs or {}).items()}
        wide = [ends(x, edge).double() if isinstance(x, torch.Tensor) else x for x in arguments]
        wanted = reference(*wide)
        returned = function(*arguments, *written.values())
    if not opened.left_out:
        raise ValueError(f"{name}: all blocks ran; a far case needs more than {2 * width} of them")
    results = list(written.values()) or _as_list(returned)
    labels = [f"{name}, {label}" for label in written] or [f"{name}, result {i}" for i in range(len(results))]
    for label, got, want in zip(labels if len(results) > 1 else [name], results, _as_list(wanted), strict=True):
        if want is not None:
            assert_ends_close(got, want, edge=edge, sure=sure[: got.dim()], name=label, **tolerance)
    return results


def _is_meta(x: object) -> bool:
    return isinstance(x, torch.Tensor) and x.is_meta


def _reserved(like: torch.Tensor, edge: int, seed: int = 0) -> torch.Tensor:
    """A tensor of the same shape, strides and place in its storage, with values at its ends unless edge is 0."""
    last = sum((size - 1) * stride for size, stride in zip(like.shape, like.stride(), strict=True))
    storage = torch.empty(like.storage_offset() + last + 1, dtype=like.dtype)
    x = storage.as_strided(like.shape, like.stride(), like.storage_offset())
    return fill_ends(x, edge, seed) if edge else x


def _as_list(results) -> list:
    return list(results) if isinstance(results, (tuple, list)) else [results]
