"""What the checks of all lessons share: sizes, random inputs, tolerances."""

from __future__ import annotations

import torch

SIZES = (0, 1, 31, 255, 256, 257, 1000, 100_003)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INF, NAN = float("inf"), float("nan")


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def roundings(dtype: torch.dtype, wide: float, absolute: float = 0.0) -> dict:
    """A tolerance for results that are computed wide: one rounding for the 16-bit types, `wide` for the others.

    `absolute` is an error in units of the computing type's rounding: of terms that cancel.
    """
    computed_in = torch.float64 if dtype == torch.float64 else torch.float32
    limits = torch.finfo(dtype)
    count = wide if dtype == computed_in else 1.05
    return {
        "rtol": count * limits.eps / 2,
        "atol": limits.tiny * limits.eps + absolute * torch.finfo(computed_in).eps / 2,
    }
