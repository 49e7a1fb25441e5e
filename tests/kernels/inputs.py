"""Inputs of kernels, and sources with a planted mistake."""

from pathlib import Path

import torch

import helpers

FLOATING = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Normal values, the same at every call, rounded from float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(helpers.device, dtype)


def factors(m: int, n: int, k: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Two matrices whose product has m rows, n columns and sums of k terms."""
    return randn(m, k, dtype=dtype), randn(k, n, dtype=dtype, seed=1)


def mistaken(source: Path, good: str, bad: str, folder: Path) -> Path:
    """A copy of a source in `folder`, whose only `good` is replaced by `bad`."""
    text = source.read_text()
    assert text.count(good) == 1
    copy = folder / "mistaken.cu"
    copy.write_text(text.replace(good, bad))
    return copy
