"""bias_gelu and its backward in Triton: the counterpart of bias_gelu_float4.cu, for lesson 15 and a peer in benchmarks.

A program computes ROWS x COLUMNS elements of a matrix at a time; Triton's autotuner chooses the tile at the first call
for a shape. As in kernels/bias_gelu_float4.cu, a backward program goes through a band of rows and leaves a row of
partial sums in float32; PyTorch adds these up.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

BLOCKS = 1056  # wanted, backward: 8 for each of an H200's 132 SMs


def _tiles(rows: tuple[int, ...], columns: tuple[int, ...]) -> list[triton.Config]:
    tiles = [
        triton.Config({"ROWS": r, "COLUMNS": c}, num_warps=w)
        for r in rows
        for c in columns
        for w in (4, 8)
        if 4 <= r * c / (32 * w) <= 32  # elements per thread
    ]
    return tiles[:1] if os.environ.get("TRITON_INTERPRET") == "1" else tiles  # without a GPU there is nothing to time


@triton.jit
def _sigmoid(z):
    """s = (1 + tanh(u)) / 2 with u = sqrt(2/pi) * (z + 0.044715 z^3)."""
    return tl.sigmoid(1.5957691216057308 * z * (1 + 0.044715 * z * z))


@triton.autotune(_tiles((1, 2, 4), (1024, 2048)), key=["rows", "columns"])
@triton.jit
def _forward_kernel(x, bias, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    strips = tl.cdiv(columns, COLUMNS)
    row = (tl.program_id(0) // strips).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) % strips) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    at = row[:, None] * columns + column[None, :]
    b = tl.load(bias + column, mask=column < columns).to(tl.float32)
    z = tl.load(x + at, mask=inside).to(tl.float32) + b[None, :]
    tl.store(out + at, (z * _sigmoid(z)).to(out.dtype.element_ty), mask=inside)


@triton.autotune(_tiles((8, 16, 32), (128, 256)), key=["rows", "columns"])
@triton.jit
def _backward_kernel(grad, x, bias, grad_x, parts, rows, columns, band, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    b = tl.load(bias + column, mask=column < columns).to(tl.float32)
    first = tl.program_id(1).to(tl.int64) * band
    end = tl.minimum(first + band, rows)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for start in range(first, end, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < end)[:, None] & (column < columns)[None, :]
        at = row[:, None] * columns + column[None, :]
        g = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
        z = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) + b[None, :]
        s = _sigmoid(z)
        g *= s + z * s * (1 - s) * 1.5957691216057308 * (1 + 3 * 0.044715 * z * z)
        tl.store(grad_x + at, g.to(grad_x.dtype.element_ty), mask=inside)
        total += tl.sum(g, axis=0)
    tl.store(parts + tl.program_id(1).to(tl.int64) * columns + column, total, mask=column < columns)


def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """gelu_tanh(x + bias) for a contiguous x of at least one element, and a bias for its last dimension."""
    columns = bias.numel()
    rows = x.numel() // columns
    out = torch.empty_like(x)
    _forward_kernel[lambda tile: (triton.cdiv(columns, tile["COLUMNS"]) * triton.cdiv(rows, tile["ROWS"]),)](
        x, bias, out, rows, columns
    )
    return out


def bias_gelu_backward(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """grad_x and grad_bias, both in the dtype of x; the sums are kept in float32."""
    columns = bias.numel()
    rows = x.numel() // columns
    grad_x = torch.empty_like(x)
    bands = max(1, min(BLOCKS // triton.cdiv(columns, 128), triton.cdiv(rows, 32)))
    band = triton.cdiv(rows, bands)
    bands = triton.cdiv(rows, band)
    parts = torch.empty((bands, columns), dtype=torch.float32, device=x.device)
    _backward_kernel[lambda tile: (triton.cdiv(columns, tile["COLUMNS"]), bands)](
        grad, x, bias, grad_x, parts, rows, columns, band
    )
    return grad_x, parts.sum(0).to(x.dtype)
