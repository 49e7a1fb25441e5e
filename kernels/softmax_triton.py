"""softmax over the last dimension, in Triton: the counterpart of softmax.cu, for lesson 15 and as a peer in benchmarks.

A program (Triton's word for a block) loads a whole row, padded to a power of two, keeps it in registers and writes it
once: 2sMN bytes for M rows of N elements of s bytes. The compiler decides how threads exchange the maximum and the sum.
A row of more than 64K elements does not fit a block's registers and is refused.
"""

import torch
import triton
import triton.language as tl

MOST_COLUMNS = 65536


@triton.jit
def softmax_kernel(x, out, columns, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    result = powers / tl.sum(powers, axis=0)
    tl.store(out + row * columns + at, result.to(out.dtype.element_ty), mask=inside)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of a contiguous floating-point tensor over its last dimension, computed in float32. Raises ValueError."""
    columns = x.shape[-1]
    if not x.is_contiguous():
        raise ValueError("x must be contiguous; pass x.contiguous()")
    if columns > MOST_COLUMNS:
        raise ValueError(f"x must have at most {MOST_COLUMNS} columns, got {columns}; use softmax.cu")
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    block = triton.next_power_of_2(columns)
    warps = min(32, max(4, block // 512))
    softmax_kernel[(x.numel() // columns,)](x, out, columns, block=block, num_warps=warps)
    return out
