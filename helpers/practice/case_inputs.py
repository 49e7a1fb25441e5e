"""Sizes, random inputs, tolerances and labels that the checks of all lessons share."""

import torch

SIZES = (0, 1, 31, 255, 256, 257, 1000, 100_003)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
EXACT = {"rtol": 0.0}
BY, ROWS_AND_COLUMNS = "{rows:,} x {columns:,}", "{rows:row}, {columns:column}"  # labels: see calls.py
KEEP = "there is no {}: keep the starter's last lines as they are"  # of a name that a check looks for
ROWS_OF = "{rows:row} of {columns:,}"
WIDE = 2**33 + 9  # columns of a far case whose columns alone need more than 32 bits
# Rows of a long far case, of one whose elements 32 bits can index, of one whose blocks, a block for a row, 16 bits can.
FEW_ROWS = 2**26 + 5, 70_001, 20_001
LEAST = 2**22 + 1031  # elements for fewer than 2^15 blocks of 256 threads, so that 16 bits hold the index of a block
INF, NAN = float("inf"), float("nan")
SPECIAL = [NAN, 1.0, -1.0, INF, -INF, 0.0, -0.0, 1e-40]
LARGE = [-60000.0, -1000.0, 100.0, 1000.0, 60000.0]  # exp of it or of its negative is infinite in a float


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normally distributed float32 values, the same in every run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def far(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor of a far case, of which only the shape is known."""
    return torch.empty(shape, dtype=dtype, device="meta")


def short(dtype: torch.dtype) -> str:
    """The name of a dtype without `torch.`."""
    return str(dtype).removeprefix("torch.")


def counted(n: int, noun: str) -> str:
    """'1 row', '2 rows'."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def roundings(dtype: torch.dtype, wide: float, absolute: float = 0.0) -> dict:
    """A relative tolerance for results computed in a wide type: one rounding for 16-bit types, `wide` for the others.

    `absolute` is an absolute error in roundings of the computing type, for results whose terms cancel.
    """
    computed_in = torch.float64 if dtype == torch.float64 else torch.float32
    limits = torch.finfo(dtype)
    count = wide if dtype == computed_in else 1.05
    return {
        "rtol": count * limits.eps / 2,
        "atol": limits.tiny * limits.eps + absolute * torch.finfo(computed_in).eps / 2,
    }
