"""What the tests of CUDA's libraries share: the flags for a GPU build of their cases, and column-major matrices."""

import sysconfig
from pathlib import Path

import pytest
import torch
from simt_programs import load_cases

import kernel_xray

LIBRARIES = Path(__file__).parent / "cases"
ON_SIMULATOR = pytest.mark.skipif(kernel_xray.target != "simulator", reason="the simulator's answer to a mistake")


def load(name, *libraries, **options):
    """The operators of libraries/NAME.cu, linked with these of CUDA's libraries on a GPU."""
    flags = ["--extended-lambda", "--expt-relaxed-constexpr"]
    linking = [f"-l{library}" for library in libraries]
    includes = []
    for folder in Path(sysconfig.get_path("purelib")).glob("nvidia/cu[0-9]*"):  # wheels, without lib<name>.so
        if kernel_xray.target == "gpu" and (folder / "include" / "cublas_v2.h").is_file():
            found = [next((folder / "lib").glob(f"lib{library}.so.*")) for library in libraries]
            linking = [f"-L{folder / 'lib'}", *(f"-l:{path.name}" for path in found)]
            includes = ["-isystem", str(folder / "include")]
    options.setdefault("extra_ldflags", linking)
    return load_cases(LIBRARIES / f"{name}.cu", f"simt_library_{name}", [*flags, *includes], **options)


def random(*shape, dtype=torch.float32, seed=0):
    """Numbers of a normal distribution, on the CPU; small integers for an integer type."""
    generator = torch.Generator().manual_seed(seed)
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(-9, 10, shape, generator=generator, dtype=dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return torch.randn(*shape, generator=generator, dtype=wide).to(dtype)


def integers(n, low=-50, high=50, seed=0):
    return torch.randint(low, high, (n,), generator=torch.Generator().manual_seed(seed), dtype=torch.int32)


def there(*tensors):
    return [t.to(kernel_xray.device, copy=True) for t in tensors]


def empty(*shape, dtype=torch.int32):
    return torch.full(shape, -77, dtype=dtype, device=kernel_xray.device)


def stored(matrix, ld):
    """The column-major form of `matrix` (..., rows, columns) with columns `ld` elements apart; NaN in between."""
    *batch, rows, columns = matrix.shape
    filler = float("nan") if matrix.dtype.is_floating_point or matrix.dtype.is_complex else 99
    out = torch.full((*batch, columns, ld), filler, dtype=matrix.dtype)
    out[..., :rows] = matrix.mT
    return out.to(kernel_xray.device)


def read(storage, rows):
    """The matrix (..., rows, columns) that `stored` has made column-major."""
    return storage.cpu()[..., :rows].mT


def vector(x, step):
    """The elements of x, |step| apart and backwards for a negative step; NaN in between."""
    out = torch.full((1 + (len(x) - 1) * abs(step),) if len(x) else (0,), float("nan"), dtype=x.dtype)
    out[:: abs(step)] = x.flip(0) if step < 0 else x
    return out.to(kernel_xray.device)


def elements(storage, step):
    """The vector that `vector` has spread out."""
    x = storage.cpu()[:: abs(step)]
    return x.flip(0) if step < 0 else x
