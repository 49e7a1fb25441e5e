"""Inputs of kernels, and sources with a planted mistake."""

from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import helpers

FLOATING = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Normal values, the same at every call, rounded from float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(helpers.device, dtype)


def factors(m: int, n: int, k: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Two matrices whose product has m rows, n columns and sums of k terms."""
    return randn(m, k, dtype=dtype), randn(k, n, dtype=dtype, seed=1)


def pytorch_attention(q, k, v, **options):
    """PyTorch's attention; by its definition in plain operators where its fused kernel refuses the processor.

    PyTorch 2.11 does on one with AMX, if ATEN_CPU_CAPABILITY names less than AVX-512: "pack_vnni2 is only supported".
    """
    try:
        return scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)
    except RuntimeError:
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)


CASES = {dtype: f"THO_DISPATCH_CASE(ladder::ScalarType::{name}, __VA_ARGS__)" for dtype, name in (
    (torch.float64, "Double"), (torch.float32, "Float"), (torch.float16, "Half"), (torch.bfloat16, "BFloat16"),
)}  # fmt: skip


def only(dtype: torch.dtype, source: Path, folder: Path) -> Path:
    """A copy of a source in `folder` whose kernels have instances for one dtype: a quarter of the time to build."""
    one = f'#define FOR_FLOATING_DTYPE(dtype, ...) THO_DISPATCH_SWITCH(dtype, "one dtype", {CASES[dtype]})'
    copy = folder / f"one_dtype_{source.name}"
    copy.write_text(f'#include "floating.h"\n#undef FOR_FLOATING_DTYPE\n{one}\n#line 1\n{source.read_text()}')
    return copy


def mistaken(source: Path, good: str, bad: str, folder: Path) -> Path:
    """A copy of a source in `folder`, whose only `good` is replaced by `bad`."""
    text = source.read_text()
    assert text.count(good) == 1
    copy = folder / "mistaken.cu"
    copy.write_text(text.replace(good, bad))
    return copy
