"""What is counted twice, by ncu on a GPU and by the simulator: micro-kernels and the course's own kernels.

A case is one launch. The same table drives both sides, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from helpers.catalogue.matmul import RUNGS
from helpers.machine.paths import KERNELS
from helpers.validation.case import Case, library
from helpers.validation.micro import MICRO, TILES

# ----------------------------------------------------------------------------------------------------------------------
# The course's kernels. A lesson that brings a kernel adds a line.

N = 100_003  # odd, and more than a few blocks


def _course(name: str, kernel: str, files: tuple[str, ...], call: Callable, make: Callable) -> Case:
    def run(device: torch.device, traced: bool) -> Callable[[], object]:
        ops = library(
            f"validation_{Path(files[0]).stem}",
            tuple(KERNELS / f for f in files),
            traced,
        )
        inputs = make(device)
        return lambda: call(ops, *inputs)

    return Case(name, "course", kernel, files[0], run)


def _vectors(count: int, n: int = N, dtype: torch.dtype = torch.float32, skip: int = 0) -> Callable:
    """Makes `count` vectors of n elements that begin `skip` elements into their storage."""

    def make(device: torch.device) -> list[torch.Tensor]:
        g = torch.Generator().manual_seed(0)
        return [torch.randn(n + skip, generator=g).to(device, dtype)[skip:] for _ in range(count)]

    return make


def _of_vector_add(variant: str, kernel: str, label: str, make: Callable) -> Case:
    return _course(f"{variant}, {label}", kernel, ("vector_add.cu",), lambda ops, *x: getattr(ops, variant)(*x), make)


def _of_muladd(variant: str, label: str, make: Callable) -> Case:
    return _course(
        f"{variant}, {label}", variant, ("fused_muladd.cu",), lambda ops, *x: getattr(ops, variant)(*x), make
    )


def _of_bias_gelu(
    file: str, function: str, kernel: str, shape: tuple[int, int], dtype: torch.dtype, skip: int = 0
) -> Case:
    """A forward, or a backward that has the matrix as gradient too; the matrix begins `skip` elements into its storage.

    A backward launches a second kernel, which is not counted.
    """

    def make(device: torch.device) -> list[torch.Tensor]:
        g = torch.Generator().manual_seed(0)
        count = 2 if "backward" in function else 1
        flat = [torch.randn(shape[0] * shape[1] + skip, generator=g).to(device, dtype)[skip:] for _ in range(count)]
        return [*(x.view(shape) for x in flat), torch.randn(shape[1], generator=g).to(device, dtype)]

    where = f", from element {skip}" if skip else ""
    label = f"{function}, {str(dtype).removeprefix('torch.')}, {shape[0]} x {shape[1]}{where}"
    return _course(label, kernel, (file,), lambda ops, *x: getattr(ops, function)(*x), make)


def _of_softmax(kernel: str, rows: int, columns: int, dtype: torch.dtype) -> Case:
    """Over the columns, whose number decides which kernel has the rows, and how many threads a row."""

    def make(device: torch.device) -> list[torch.Tensor]:
        return [torch.randn(rows, columns, generator=torch.Generator().manual_seed(0)).to(device, dtype)]

    label = f"softmax, {str(dtype).removeprefix('torch.')}, {rows} x {columns}"
    return _course(label, kernel, ("softmax.cu",), lambda ops, x: ops.softmax(x), make)


def _of_matmul(
    file: str, function: str, m: int, n: int, k: int, dtype: torch.dtype = torch.float32, turned: bool = False
) -> Case:
    """c = a @ b; `turned`: both factors are transposed views."""

    def make(device: torch.device) -> list[torch.Tensor]:
        g = torch.Generator().manual_seed(0)
        shapes = ((k, m), (n, k)) if turned else ((m, k), (k, n))
        a, b = (torch.randn(shape, generator=g).to(device, dtype) for shape in shapes)
        return [a.t(), b.t()] if turned else [a, b]

    label = f"{function}, {str(dtype).removeprefix('torch.')}, {m} x {n} x {k}" + ", transposed" * turned
    return _course(
        label, f"matmul_{Path(file).stem[3:]}_kernel", (file,), lambda ops, *x: getattr(ops, function)(*x), make
    )


_MULT = ("elementwise_mult_stable.cu", "elementwise_mult_kernel.cu")
_HALVES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

_GRID = ("hello_grid.cu",)

COURSE = [
    _course(
        f"who_is_where, {N}",
        "who_is_where_kernel",
        _GRID,
        lambda ops, *x: ops.who_is_where(*x, 256),
        lambda device: [torch.zeros(N, dtype=torch.int32, device=device) for _ in range(2)],
    ),
    *(
        _course(
            f"two_ways, {N}, groups of {group}",
            "two_ways_kernel",
            _GRID,
            lambda ops, x, group=group: ops.two_ways(x, group),
            lambda device: [torch.zeros(N, dtype=torch.int32, device=device)],
        )
        for group in (1, 32)
    ),
    _of_vector_add("vector_add_simple", "vector_add_simple_kernel", f"{N}", _vectors(2)),
    _of_vector_add("vector_add_grid_stride", "vector_add_grid_stride_kernel", f"{N}", _vectors(2)),
    _of_vector_add("vector_add", "vector_add_kernel", f"{N}", _vectors(2)),
    _of_vector_add("vector_add", "vector_add_kernel", "2^18", _vectors(2, 1 << 18)),
    _of_vector_add("vector_add", "vector_add_grid_stride_kernel", f"{N}, from element 1", _vectors(2, skip=1)),
    *(
        _course(
            f"elementwise_mult, {name}, {N}",
            "elementwise_mult_kernel",
            _MULT,
            lambda ops, *x: ops.elementwise_mult(*x),
            _vectors(2, dtype=dtype),
        )
        for name, dtype in _HALVES.items()
        if dtype.itemsize >= 4
    ),
    *(_of_muladd("fused_muladd", f"{name}, {N}", _vectors(3, dtype=dtype)) for name, dtype in _HALVES.items()),
    _of_muladd("fused_muladd", f"float32, {N}, from element 1", _vectors(3, skip=1)),
    *(_of_muladd("fused_muladd_backward", f"{name}, {N}", _vectors(3, dtype=dtype)) for name, dtype in _HALVES.items()),
]
for _dtype in (torch.float32, torch.float16):
    for _file, _name, _shape in (
        ("bias_gelu.cu", "bias_gelu_simple", (60, 1000)),
        ("bias_gelu_half.cu", "bias_gelu_pairs", (60, 1000)),
        ("bias_gelu_float4.cu", "bias_gelu", (60, 1000)),
        ("bias_gelu_float4.cu", "bias_gelu", (60, 1001)),
        ("bias_gelu.cu", "bias_gelu_backward_simple", (60, 1000)),
        ("bias_gelu_float4.cu", "bias_gelu_backward", (60, 1000)),
    ):
        COURSE.append(_of_bias_gelu(_file, _name, f"{_name}_kernel", _shape, _dtype))
COURSE.append(_of_bias_gelu("bias_gelu_float4.cu", "bias_gelu", "bias_gelu_kernel", (60, 1000), torch.float32, skip=1))
COURSE += [
    *(_of_softmax("softmax_kernel", 70, 1000, dtype) for dtype in (torch.float32, torch.float16)),  # a warp a row
    _of_softmax("softmax_kernel", 33, 1001, torch.float32),  # a number at a time
    _of_softmax("softmax_kernel", 9, 5000, torch.float32),  # 256 threads a row
    _of_softmax("softmax_kernel", 5, 20000, torch.float32),  # 1,024 threads a row
    _of_softmax("softmax_long_kernel", 3, 40000, torch.float32),
    _of_matmul("matmul/01_naive.cu", "matmul_naive", 65, 70, 33),
    _of_matmul("matmul/02_coalesced.cu", "matmul_coalesced", 65, 70, 33),
    *(
        _of_matmul("matmul/03_tiled.cu", function, *shape, turned=turned)
        for function in ("matmul_tiled_padded", "matmul_tiled_unpadded")
        for shape in ((65, 70, 33), (64, 96, 64))
        for turned in (False, True)
    ),
    *(
        _of_matmul(RUNGS[rung], rung, *shape)
        for rung in (
            "matmul_register_1d",
            "matmul_register_2d",
            "matmul_vectorised",
            "matmul_async",
            "matmul_warp_tile",
        )
        for shape in ((130, 136, 72), (65, 70, 33))
    ),
    *(
        _of_matmul(RUNGS[rung], rung, *shape, dtype=torch.float16)
        for rung in ("matmul_wmma", "matmul_mma")
        for shape in ((256, 128, 64), (130, 136, 72), (65, 70, 33))
    ),
]
HOPPER = [  # made of what compute capability 9.0 alone has
    _of_matmul(RUNGS[rung], rung, *shape, dtype=torch.bfloat16)
    for rung in ("matmul_wgmma", "matmul_cluster")
    for shape in ((128, 256, 320), (256, 256, 320), (129, 264, 72))
]
_HAS_TILES = not torch.cuda.is_available() or torch.cuda.get_device_capability() == (9, 0)
if _HAS_TILES:
    COURSE += HOPPER
CASES = MICRO + (TILES if _HAS_TILES else []) + COURSE
KERNEL_NAMES = sorted({case.kernel for case in CASES})
