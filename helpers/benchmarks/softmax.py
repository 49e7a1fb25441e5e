"""What is measured of softmax: PyTorch's and Triton's beside ours."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch

KERNELS = Path(__file__).resolve().parent.parent.parent / "kernels"


def inputs(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor]:
    torch.manual_seed(0)
    return (torch.empty(shape, dtype=dtype, device=device).uniform_(-4, 4),)


def over_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def bytes_moved(shape: tuple[int, ...], size: int) -> int:
    """Every number read once and written once."""
    return 2 * size * math.prod(shape)


def triton() -> Callable:
    """The function in kernels/softmax_triton.py. Raises ImportError where there is no Triton."""
    if str(KERNELS) not in sys.path:
        sys.path.append(str(KERNELS))
    from softmax_triton import softmax

    return softmax
