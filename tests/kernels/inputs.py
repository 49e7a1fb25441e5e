"""Inputs of kernels, sources with a planted mistake, and what is built of a source."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import helpers
from helpers import paths
from kernel_xray.build import flags
from kernel_xray.runtime import far

needs_far_memory = pytest.mark.skipif(
    helpers.target == "gpu" or not far.SUPPORTED, reason="the simulator on Linux reserves memory that nothing fills"
)
# Vectors of a row that some lanes of a warp have: on both sides of each number of lanes.
NARROW = (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33)
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


def mistaken(source: Path, good: str, bad: str, folder: Path, header: str = "") -> Path:
    """A copy of a source in `folder`, in which, or in whose header, the only `good` is replaced by `bad`."""
    include = paths.KERNELS / "include"
    copied = {header} if header else set()  # and the headers that include it
    while (
        more := {path.name for path in include.iterdir() for name in copied if f'#include "{name}"' in path.read_text()}
        - copied
    ):
        copied |= more
    for original in (source, *(include / name for name in copied)):
        text = original.read_text()
        if original.name == (header or source.name):
            assert text.count(good) == 1
            text = text.replace(good, bad)
        for name in copied:
            text = text.replace(f'#include "{name}"', f'#include "{folder / name}"')
        (folder / ("mistaken.cu" if original == source else original.name)).write_text(text)
    return folder / "mistaken.cu"


def load(name: str, source: Path, **options: Any) -> Any:
    """The operators of a source; one that includes Hopper's headers is built for that GPU alone."""
    options |= {"extra_include_paths": [paths.KERNELS], "is_python_module": False}
    if '#include "hopper' in source.read_text():
        options["extra_cuda_cflags"] = flags.SM_90A
    return helpers.load(name, [source], **options)
