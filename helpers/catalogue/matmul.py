"""What the matmul ladder is measured on: shapes are (m, n, k), operands random, the peer is cuBLAS without TF32.

Also of the product with an epilogue, gelu(a @ b + bias): there the peer is cuBLAS with its own epilogue.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

Shape = tuple[int, ...]
CUBES = ((4096,) * 3, (8192,) * 3)
SMALLER_CUBES = ((1024,) * 3, (2048,) * 3)
# The ladder from the bottom up: rung -> file in kernels/
RUNGS = {
    "matmul_naive": "matmul/01_naive.cu",
    "matmul_coalesced": "matmul/02_coalesced.cu",
    "matmul_tiled_padded": "matmul/03_tiled.cu",
    "matmul_tiled": "matmul/03_tiled.cu",
    "matmul_register_1d": "matmul/04_register_1d.cu",
    "matmul_register_2d": "matmul/05_register_2d.cu",
    "matmul_vectorised": "matmul/06_vectorised.cu",
    "matmul_async": "matmul/07_async.cu",
    "matmul_warp_tile": "matmul/08_warp_tile.cu",
    "matmul_wmma": "matmul/09_wmma.cu",
    "matmul_mma": "matmul/10_mma.cu",
    "matmul_wgmma": "matmul/11_wgmma.cu",
    "matmul_cluster": "matmul/12_cluster.cu",
}


def needs_hopper(rung: str) -> bool:
    return rung in ("matmul_wgmma", "matmul_cluster")


def inputs(shape: Shape, dtype: torch.dtype, device: torch.device | str) -> tuple[torch.Tensor, torch.Tensor]:
    """a of m x k and b of k x n normally distributed numbers.

    Random, because multiplying zeros takes less power, and a GPU at its power limit is then faster than it will be.
    """
    m, n, k = shape
    torch.manual_seed(0)
    return torch.randn(m, k, device=device).to(dtype), torch.randn(k, n, device=device).to(dtype)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b, for which PyTorch calls cuBLAS."""
    return a @ b


def cublas() -> Callable:
    """torch.mm, for which PyTorch calls cuBLAS; float32 is not rounded to TF32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.mm


def inputs_with_bias(shape: Shape, dtype: torch.dtype, device: torch.device | str) -> tuple[torch.Tensor, ...]:
    """a, b and a number for each column of b, which is smaller than in `inputs`: GELU bends near 0."""
    a, b = inputs(shape, torch.float32, device)
    bias = torch.randn(shape[1], device=device)
    return a.to(dtype), (b / shape[2] ** 0.5).to(dtype), bias.to(dtype)


def bias_gelu(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """gelu(a @ b + bias), in its tanh form. Two kernels: cuBLAS adds bias, another one takes GELU."""
    return torch.nn.functional.gelu(torch.addmm(bias, a, b), approximate="tanh")


def cublas_epilogue() -> Callable:
    """The same in one kernel of cuBLAS, whose own epilogue takes bias and, on a GPU, the tanh form of GELU."""
    return lambda a, b, bias: torch._addmm_activation(bias, a, b, use_gelu=True)


def tiles(name: str, count: int) -> dict[str, str | Callable]:
    """The variants of a rung with several sizes of tiles: its own choice, and each choice by its number."""

    def with_tile(tile: int) -> Callable:
        return lambda ops: functools.partial(getattr(ops, f"{name}_with").default, tile=tile)

    return {name: name} | {f"{name}_{tile}": with_tile(tile) for tile in range(count)}


def flops(shape: Shape) -> int:
    """A multiplication and an addition for each product."""
    m, n, k = shape
    return 2 * m * n * k


def bytes_moved(shape: Shape, size: int) -> int:
    """Each number of a, b and c moves once; `size` bytes each."""
    m, n, k = shape
    return size * (m * k + k * n + m * n)


def roundings(shape: Shape) -> int:
    """Terms that a number of c adds up, four times over.

    Tensor cores do not round sums, they cut them off, on Hopper after 25 bits of the largest term. So errors of one sum
    have one sign and grow faster than those of random signs; twice the tolerance holds for k up to 8192.
    """
    return 4 * max(1, shape[2])
