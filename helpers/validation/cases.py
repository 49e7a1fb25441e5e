"""What is counted twice, by ncu on a GPU and by the simulator: micro-kernels and the course's own kernels.

A case is one launch. The same table drives both sides, in the same order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

import helpers

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parent.parent / "kernels"
ALL = 0xFFFFFFFF
EVEN = 0x55555555


@dataclass(frozen=True)
class Case:
    """One launch: `run(device, traced)` gives it as a function; `kernel` is its kernel's name, `source` the file."""

    name: str
    group: str  # "global", "shared" or "course"
    kernel: str
    source: str
    run: Callable[[torch.device, bool], Callable[[], object]]

    @property
    def repeats(self) -> int:
        """How often ncu counts it: some counters of shared memory come out higher in some runs than in others."""
        return 5 if self.group == "course" else 1

    def prepared(self, device: torch.device, traced: bool) -> Callable[[], object]:
        """The launch as a function without arguments, whose inputs are made already."""
        return self.run(device, traced)


@dataclass(frozen=True)
class Micro:
    """One lane access in a pattern: see access.cu for what the numbers mean."""

    name: str
    space: str
    store: bool
    bytes: int
    blocks: int = 1
    threads: int = 32
    divide: int = 1
    multiply: int = 1
    modulus: int = 1 << 30
    flip: int = 0
    offset: int = 0
    lanes: int = ALL

    def case(self) -> Case:
        def run(device: torch.device, traced: bool) -> Callable[[], object]:
            ops = library("validation_access", (HERE / "access.cu",), traced)
            sink = torch.zeros(1, dtype=torch.int32, device=device)
            numbers = (self.store, self.bytes, self.blocks, self.threads, self.divide, self.multiply, self.modulus)
            numbers += (self.flip, self.offset, self.lanes)
            if self.space == "shared":
                return lambda: ops.micro_shared(sink, *numbers)
            data = torch.zeros(1 << 20, dtype=torch.uint8, device=device)
            return lambda: ops.micro_global(data, sink, *numbers)

        verb = "store" if self.store else "load"
        return Case(self.name, self.space, f"micro_{self.space}_{verb}_kernel", "access.cu", run)


def _micro(space: str, verb: str, bytes_: int, pattern: str, **numbers: int) -> Micro:
    return Micro(f"{space} {verb}, {bytes_} B, {pattern}", space, verb == "store", bytes_, **numbers)


def _global() -> list[Micro]:
    found = []
    for verb in ("load", "store"):
        found += [_micro("global", verb, size, "neighbours") for size in (1, 2, 4, 8, 16)]
        found += [_micro("global", verb, size, "stride 2", multiply=2) for size in (4, 8, 16)]
        found += [
            _micro("global", verb, 4, "stride 3", multiply=3),
            _micro("global", verb, 4, "stride 8", multiply=8),
            _micro("global", verb, 4, "stride 32", multiply=32),
            _micro("global", verb, 16, "stride 32", multiply=32),
            _micro("global", verb, 1, "offset 1", offset=1),
            _micro("global", verb, 2, "offset 1", offset=1),
            _micro("global", verb, 4, "offset 1", offset=1),
            _micro("global", verb, 8, "offset 3", offset=3),
            _micro("global", verb, 16, "offset 1", offset=1),
            _micro("global", verb, 4, "reversed", flip=31),
            _micro("global", verb, 4, "shuffled within 128 B", multiply=13, modulus=32),
            _micro("global", verb, 4, "scattered over 16 KB", multiply=1021, modulus=4096),
            _micro("global", verb, 8, "scattered over 16 KB", multiply=509, modulus=2048),
            _micro("global", verb, 4, "all the same", multiply=0),
            _micro("global", verb, 16, "all the same", multiply=0),
            _micro("global", verb, 4, "pairs the same", divide=2),
            _micro("global", verb, 4, "lanes 0-6", lanes=0x7F),
            _micro("global", verb, 4, "even lanes", lanes=EVEN),
            _micro("global", verb, 16, "even lanes", lanes=EVEN),
            _micro("global", verb, 4, "20 threads", threads=20),
            _micro("global", verb, 4, "3 blocks of 100", blocks=3, threads=100),
            _micro("global", verb, 16, "4 blocks of 128, stride 3", blocks=4, threads=128, multiply=3),
        ]
    return found


def _shared() -> list[Micro]:
    found = []
    for verb in ("load", "store"):
        found += [_micro("shared", verb, size, "neighbours") for size in (1, 2, 4, 8, 16)]
        found += [_micro("shared", verb, 4, f"stride {s}", multiply=s) for s in (2, 3, 4, 8, 16, 32, 33)]
        found += [
            _micro("shared", verb, 2, "stride 2", multiply=2),
            _micro("shared", verb, 2, "stride 64", multiply=64),
            _micro("shared", verb, 8, "stride 2", multiply=2),
            _micro("shared", verb, 8, "stride 17", multiply=17),
            _micro("shared", verb, 16, "stride 2", multiply=2),
            _micro("shared", verb, 16, "stride 9", multiply=9),
            _micro("shared", verb, 4, "reversed", flip=31),
            _micro("shared", verb, 4, "shuffled", multiply=13, modulus=32),
            _micro("shared", verb, 4, "scattered", multiply=1021, modulus=4096),
            _micro("shared", verb, 8, "scattered", multiply=509, modulus=2048),
            _micro("shared", verb, 4, "lanes 0-6, stride 32", multiply=32, lanes=0x7F),
            _micro("shared", verb, 4, "even lanes", lanes=EVEN),
            _micro("shared", verb, 16, "lanes 0-6", lanes=0x7F),
            _micro("shared", verb, 4, "20 threads", threads=20),
            _micro("shared", verb, 4, "3 blocks of 100, stride 2", blocks=3, threads=100, multiply=2),
        ]
    # Lanes that share a word or a vector: how the phases of 8 and 16 bytes behave is what these are to tell.
    for size in (4, 8, 16):
        found += [
            _micro("shared", "load", size, "all the same", multiply=0),
            _micro("shared", "load", size, "pairs the same", divide=2),
            _micro("shared", "load", size, "fours the same", divide=4),
            _micro("shared", "load", size, "lanes 8 apart the same", modulus=8),
            _micro("shared", "load", size, "lanes 16 apart the same", modulus=16),
            _micro("shared", "load", size, "pairs the same, stride 2", divide=2, multiply=2),
        ]
    for size in (8, 16):
        found += [
            _micro("shared", "load", size, "lanes 2 apart the same", modulus=2),
            _micro("shared", "load", size, "lanes 4 apart the same", modulus=4),
            _micro("shared", "load", size, "even lanes", lanes=EVEN),
            _micro("shared", "load", size, "lanes 0, 1, 4, 5, ...", lanes=0x33333333),
            _micro("shared", "load", size, "half a warp", lanes=0xFFFF),
        ]
    return found


MICRO = [micro.case() for micro in _global() + _shared()]


_SM_90A = ("-gencode=arch=compute_90a,code=sm_90a",)
_NEEDS = {"matmul_wgmma.cu": _SM_90A, "matmul_cluster.cu": _SM_90A}  # flags of nvcc


@functools.cache
def library(name: str, files: tuple[Path, ...], traced: bool):
    """The operators that the files register, for the simulator's traced mode or for this machine's target."""
    return helpers.load(
        name=name + "_traced" * traced,
        sources=list(files),
        extra_cuda_cflags=["-lineinfo", *(flag for f in files for flag in _NEEDS.get(f.name, ()))],
        is_python_module=False,
        traced=traced,
    )


# ----------------------------------------------------------------------------------------------------------------------
# The course's kernels. A lesson that brings a kernel adds a line.

N = 100_003  # odd, and more than a few blocks


def _course(name: str, kernel: str, files: tuple[str, ...], call: Callable, make: Callable) -> Case:
    def run(device: torch.device, traced: bool) -> Callable[[], object]:
        ops = library(f"validation_{Path(files[0]).stem}", tuple(KERNELS / f for f in files), traced)
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
    return _course(label, f"{Path(file).stem}_kernel", (file,), lambda ops, *x: getattr(ops, function)(*x), make)


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
    _of_matmul("matmul_naive.cu", "matmul_naive", 65, 70, 33),
    _of_matmul("matmul_coalesced.cu", "matmul_coalesced", 65, 70, 33),
    *(
        _of_matmul("matmul_tiled.cu", function, *shape, turned=turned)
        for function in ("matmul_tiled_padded", "matmul_tiled_unpadded")
        for shape in ((65, 70, 33), (64, 96, 64))
        for turned in (False, True)
    ),
    *(
        _of_matmul(f"{rung}.cu", rung, *shape)
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
        _of_matmul(f"{rung}.cu", rung, *shape, dtype=torch.float16)
        for rung in ("matmul_wmma", "matmul_mma")
        for shape in ((256, 128, 64), (130, 136, 72), (65, 70, 33))
    ),
]
HOPPER = [  # made of what compute capability 9.0 alone has
    _of_matmul(f"{rung}.cu", rung, *shape, dtype=torch.bfloat16)
    for rung in ("matmul_wgmma", "matmul_cluster")
    for shape in ((128, 256, 320), (256, 256, 320), (129, 264, 72))
]
if not torch.cuda.is_available() or torch.cuda.get_device_capability() == (9, 0):
    COURSE += HOPPER
CASES = MICRO + COURSE
KERNEL_NAMES = sorted({case.kernel for case in CASES})
