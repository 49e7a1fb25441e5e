"""What is measured of softmax: PyTorch's and Triton's beside ours."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from helpers.catalogue.triton_peers import triton_function


def inputs(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor]:
    torch.manual_seed(0)
    return (torch.empty(shape, dtype=dtype, device=device).uniform_(-4, 4),)


def over_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def bytes_moved(shape: tuple[int, ...], size: int) -> int:
    """Every number read once and written once."""
    return 2 * size * math.prod(shape)


def triton() -> Callable:
    return triton_function("softmax_triton", "softmax")
