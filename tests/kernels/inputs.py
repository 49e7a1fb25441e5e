"""Inputs of kernels, sources with a planted mistake, and what is built of a source."""

import re
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


def with_headers(source: Path) -> dict[Path, str]:
    """A source and the headers that it includes, directly or not: path -> text."""
    texts: dict[Path, str] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop().resolve()
        if path not in texts:
            texts[path] = path.read_text()
            names = re.findall(r'^#include "(.+)"', texts[path], re.MULTILINE)
            places = (folder / name for name in names for folder in (path.parent, paths.KERNELS / "include"))
            waiting += filter(Path.exists, places)
    return texts


def mistaken(source: Path, good: str, bad: str, folder: Path, header: str = "") -> Path:
    """A copy of a source in `folder`, in which, or in one of whose headers, the only `good` is replaced by `bad`.

    header: which one, if the source has `good` too, or several headers have it.
    """
    texts = with_headers(source)
    names = [header or source.name] if header or good in source.read_text() else [p.name for p in texts]
    (changed,) = (path for path, text in texts.items() if path.name in names and good in text)
    assert texts[changed].count(good) == 1
    texts[changed] = texts[changed].replace(good, bad)
    copied = {changed.name, source.name}
    include = r'(?<=#include ")(?:[^"]*/)?({})(?=")'
    while more := {p.name for p, text in texts.items() if re.search(include.format("|".join(copied)), text)} - copied:
        copied |= more  # those that include one of them
    for path, text in texts.items():
        if path.name in copied:
            text = re.sub(include.format("|".join(copied)), rf"{folder}/\1", text)
            (folder / ("mistaken.cu" if path.name == source.name else path.name)).write_text(text)
    return folder / "mistaken.cu"


def with_mistake(source: Path, good: str, bad: str, folder: Path) -> Path:
    """`mistaken`, or the source itself if neither it nor a header has `good`: of several sources that share headers."""
    if not any(good in text for text in with_headers(source).values()):
        return source
    (folder / source.stem).mkdir()
    return mistaken(source, good, bad, folder / source.stem)


def load(name: str, source: Path, **options: Any) -> Any:
    """The operators of a source; one that includes Hopper's headers is built for that GPU alone."""
    options |= {"extra_include_paths": [paths.KERNELS], "is_python_module": False}
    if any(path.name.startswith("hopper") for path in with_headers(source)):
        options["extra_cuda_cflags"] = flags.SM_90A
    return helpers.load(name, [source], **options)
