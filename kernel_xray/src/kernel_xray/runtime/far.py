"""Kernels on tensors of 2^31 to 2^36 elements, in milliseconds: is every index wide enough?

Tensors lie in memory that is only reserved, a page is taken when it is first written, and of each launch only the first
and the last blocks run. Inputs have values at both ends and zeros in between; of results, both ends are kept. For the
simulator's fast mode alone, and for kernels in which a thread's work does not grow with the whole tensor.
"""

import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from kernel_xray.runtime import faults
from kernel_xray.runtime.ends import ends, fill_ends

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


@dataclass(frozen=True)
class Computed:
    """What a call computed in a window: the ends of its results, and their whole shapes.

    left_out  how many blocks, or clusters, did not run
    touched   bytes of memory that the process took for it
    """

    ends: list[torch.Tensor]
    shapes: list[tuple[int, ...]]
    left_out: int
    touched: int


def compute(
    function: Callable,
    inputs: Sequence,
    outputs: Mapping[str, torch.Tensor] | None = None,
    *,
    edge: int = 512,
    width: int = 2,
) -> Computed:
    """Calls `function(*inputs, *outputs)` in a window; errors of the function pass through.

    inputs   those that are meta tensors become reserved ones of their shape, strides and dtype, filled at both ends
    outputs  meta tensors by name, which the function writes; without them, it returns its results
    """
    before = _resident()
    with window(width) as opened:
        written = [_reserved(x, 0) for x in (outputs or {}).values()]
        returned = function(*_arguments(inputs, edge), *written)
        results = written or as_list(returned)
        found = [ends(x, edge) for x in results], [tuple(x.shape) for x in results]
        touched = _resident() - before  # the results still hold their memory
    return Computed(*found, opened.left_out, touched)


def wide(inputs: Sequence, edge: int = 512, width: int = 2) -> list:
    """The inputs of `compute` for a reference: tensors as their ends (ends.py) in float64, the others as they are."""
    with window(width):
        return [ends(x, edge).double() if isinstance(x, torch.Tensor) else x for x in _arguments(inputs, edge)]


def as_list(results) -> list:
    """What a function returned, as a list."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _resident() -> int:
    """Bytes of memory that this process has taken."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _arguments(inputs: Sequence, edge: int) -> list:
    return [_reserved(x, edge, seed) if _is_meta(x) else x for seed, x in enumerate(inputs)]


def _is_meta(x: object) -> bool:
    return isinstance(x, torch.Tensor) and x.is_meta


def _reserved(like: torch.Tensor, edge: int, seed: int = 0) -> torch.Tensor:
    """A tensor of the same shape, strides and place in its storage, with values at its ends unless edge is 0."""
    last = sum((size - 1) * stride for size, stride in zip(like.shape, like.stride(), strict=True))
    storage = torch.empty(like.storage_offset() + last + 1, dtype=like.dtype)
    x = storage.as_strided(like.shape, like.stride(), like.storage_offset())
    return fill_ends(x, edge, seed) if edge else x
