"""Arguments for the exhibits. Each function takes a device, or returns a function of it; the values never change."""

from collections.abc import Callable

import torch

Prepare = Callable[[torch.device], tuple]


def _normal(shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def floats(*shape: int) -> Prepare:
    return lambda device: (_normal(shape).to(device),)


def two_floats(*shape: int) -> Prepare:
    return lambda device: (_normal(shape).to(device), _normal(shape, 1).to(device))


def ones(*shape: int, dtype: torch.dtype) -> Prepare:
    return lambda device: (torch.ones(shape, dtype=dtype, device=device),)


def negative(*shape: int) -> Prepare:
    return lambda device: (-1 - _normal(shape).abs().to(device),)


def halves(n: int) -> Prepare:
    return lambda device: (_normal((n,)).half().to(device),)


def tiles(count: int) -> Prepare:
    """`count` tiles of 8 rows of 64 bfloat16 elements, one below the other."""
    return lambda device: (_normal((8 * count, 64)).bfloat16().to(device),)


def sliced(n: int) -> Prepare:
    """n floats that begin 4 bytes into their storage."""
    return lambda device: (_normal((n + 1,)).to(device)[1:],)


def ramp(limit: float, dtype: torch.dtype) -> Prepare:
    """From -limit to limit, in 1,000 steps."""
    return lambda device: (torch.linspace(-limit, limit, 1001).to(device, dtype),)


def floats_and_counter(n: int) -> Prepare:
    return lambda device: (_normal((n,)).to(device), torch.zeros(1, dtype=torch.int32, device=device))


def values_and_bins(n: int) -> Prepare:
    def make(device: torch.device) -> tuple:
        values = torch.randint(0, 16, (n,), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
        return values.to(device), torch.zeros(16, dtype=torch.int32, device=device)

    return make


def scores_and_values(n: int) -> Prepare:
    """An [n, n] matrix and n values, of one attention head with one column."""
    return lambda device: (_normal((n, n)).to(device), _normal((n,), 1).to(device))


def points_and_picks(n: int, picks: int) -> Prepare:
    return lambda device: (_normal((n,)).to(device), picks)


def one_of_two(device: torch.device) -> tuple:
    """1,000 floats to fill, followed by another tensor's 1,000 in the same allocation."""
    return torch.zeros(2, 1000, device=device)[0], 1.0


def indices(device: torch.device) -> tuple:
    return _normal((100,)).to(device), torch.tensor([3, 0, -1, 99], device=device)


def two_gigabytes(device: torch.device) -> tuple:
    """Three rows of 2^30 bytes; a kernel reads one byte of each. On a CPU, untouched pages take no memory."""
    return torch.empty(3, 2**30, dtype=torch.uint8, device=device), 5


def float_and_double(device: torch.device) -> tuple:
    return _normal((100,)).to(device), _normal((100,), 1).double().to(device)


def transposed(device: torch.device) -> tuple:
    return _normal((30, 40)).to(device).t(), _normal((40, 30), 1).to(device)


def two_doubles(device: torch.device) -> tuple:
    return tuple(_normal((5,), seed).double().to(device).requires_grad_() for seed in (0, 1))


def broadcast_doubles(device: torch.device) -> tuple:
    return tuple(_normal(s).double().to(device).requires_grad_() for s in ((3, 4), (4,)))


def large_matrix(device: torch.device) -> tuple:
    """Enough work to keep a GPU busy for milliseconds; next to nothing elsewhere."""
    size = 4096 if device.type == "cuda" else 8
    return (torch.rand(size, size, device=device),)
