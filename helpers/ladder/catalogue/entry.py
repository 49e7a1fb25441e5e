"""The form of the catalogue: an `Operator` is a computation, a `Kernel` implements it, a `Launch` is counted."""

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from helpers.ladder.catalogue.extensions import extension
from kernel_xray.build import flags as compiler_flags

Shape = tuple[int, ...]
FLOATING = ("float32", "float64", "float16", "bfloat16")
MEASURED = ("float32", "float16", "bfloat16")
# Why an operator can move its bytes faster than a copy of the same size.
THREE_STREAMS = "a copy stays below the data sheet's bandwidth; work that reads more than it writes comes closer to it"
ONE_KERNEL = "a copy is a kernel like any other: another one can be faster with more bytes in flight"


def elements(shape: Shape) -> int:
    return math.prod(shape)


def whole(shape: Shape) -> Shape:
    """The operator's shape, as the shape of an argument."""
    return shape


def row(shape: Shape) -> Shape:
    """One row of the operator's shape, as the shape of an argument."""
    return shape[-1:]


Sampler = Callable[[Sequence[Shape], torch.dtype, torch.device], tuple]


def uniform(width: float) -> Sampler:
    """Makes random tensors of some shapes, uniform in [-width, width), the same at every call."""

    def make(shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device) -> tuple:
        torch.manual_seed(0)
        return tuple(torch.empty(shape, dtype=dtype, device=device).uniform_(-width, width) for shape in shapes)

    return make


UNIFORM = uniform(2)


@dataclass(frozen=True)
class Launch:
    """One launch, which ncu counts on a GPU and the X-ray in the simulator."""

    shape: Shape  # of the operator
    dtype: str = ""  # of the tensors; "": the kernel's first, which the label omits
    first: int = 0  # index in the storage at which arguments of this shape begin
    transposed: bool = False  # whether the arguments are transposed views
    scalars: tuple[int, ...] = ()  # arguments after the tensors
    note: str = ""  # end of the label
    kernel: str = ""  # name of the __global__ function, if not the kernel's own

    @property
    def label(self) -> str:
        """The part of its name in results/xray_vs_ncu.json that follows the kernel's."""
        size = " x ".join(map(str, self.shape))
        if len(self.shape) == 1 and self.shape[0].bit_count() == 1:
            size = f"2^{self.shape[0].bit_length() - 1}"
        begins = f"from element {self.first}" if self.first else ""
        turned = "transposed" if self.transposed else ""
        return ", ".join(filter(None, (self.dtype, size, begins, turned, self.note)))


@dataclass(frozen=True)
class Kernel:
    """One implementation of an operator."""

    name: str  # of the function in the files, unless `function` names it; unique within the operator
    files: tuple[str, ...]  # in kernels/, built as one extension
    function: str | Callable[[Any], Callable] = ""  # the function's name, or makes it from the extension
    variant: str = ""  # name in records, if not `name`
    tiles: int = 0  # count of tile sizes; NAME_with takes their index, and each is timed as the variant NAME_index
    # Name of the extension; by default the first file's, with its folder in place of a leading number
    library: str = ""
    python_module: bool = False  # whether the extension is a pybind11 module; otherwise it registers operators
    global_name: str = ""  # of the __global__ function, if not NAME_kernel
    dtypes: tuple[str, ...] = ("float32",)  # it takes these and refuses all others
    any_layout: bool = False  # whether it reads strided tensors; otherwise only contiguous ones
    backward: str = ""  # name of the kernel that computes its gradients
    capability: tuple[int, int] | None = None  # the only one that runs it; nvcc's flags follow
    flags: tuple[str, ...] = ()  # more flags for nvcc
    largest: Shape | None = None  # the largest shape to time; larger ones take seconds per call
    rough: int = 0  # for a less exact kernel: its error in float32 roundings of a typical result
    slow_to_build: bool = False  # whether only the slow tests build it
    launches: tuple[Launch, ...] = ()  # to be counted by ncu and the X-ray
    adds: str = ""  # of a rung of a ladder: what it changes in the one before, and why that helps, in one sentence
    not_timed: str = ""  # the reason, if so; the same for the next three
    not_counted: str = ""
    not_differentiable: str = ""
    not_registered: str = ""
    not_contracted: str = ""  # why tests/kernels/contract.py does not apply to it, if so

    @property
    def cuda_name(self) -> str:
        """The name of its __global__ function."""
        return self.global_name or f"{self.name}_kernel"

    @property
    def library_name(self) -> str:
        first = Path(self.files[0])
        return self.library or re.sub(r"^\d+_", f"{first.parent.name}_", first.stem)

    @property
    def nvcc_flags(self) -> tuple[str, ...]:
        special = compiler_flags.SM_90A if self.capability == (9, 0) else []
        return (*special, *self.flags)

    @property
    def runs_here(self) -> bool:
        """Whether this machine's GPU, or the simulator, can run it."""
        on_gpu = torch.cuda.is_available()
        return self.capability is None or not on_gpu or torch.cuda.get_device_capability() == self.capability

    @property
    def variants(self) -> dict[str, str | Callable[[Any], Callable]]:
        """Functions to time: variant -> the function's name, or a function that makes it from the extension."""
        if self.not_timed:
            return {}
        own = {self.variant or self.name: self.function or self.name}
        return own | {f"{self.name}_{tile}": self._with_tile(tile) for tile in range(self.tiles)}

    def _with_tile(self, tile: int) -> Callable[[Any], Callable]:
        return lambda ops: functools.partial(getattr(ops, f"{self.name}_with").default, tile=tile)

    def extension(self, traced: bool = False) -> Any:
        """The built extension, perhaps for the simulator's traced mode. Raises as helpers.load."""
        name = f"{self.library_name}_traced" if traced else self.library_name
        return extension(name, self.files, flags=self.nvcc_flags, python_module=self.python_module, traced=traced)

    def function_of(self, variant: str, built: Any) -> Callable:
        """The function of a variant in a built extension."""
        made = self.variants[variant]
        return made(built) if callable(made) else getattr(built, made)

    def load(self) -> dict[str, Callable]:
        """Builds the extension and returns variant -> function. Raises as helpers.load."""
        built = self.extension()
        functions = {variant: self.function_of(variant, built) for variant in self.variants}
        # Looking up an operator's overload at each call would cost microseconds.
        return {variant: getattr(function, "default", function) for variant, function in functions.items()}

    def attempt(self) -> tuple[dict[str, Callable], str]:
        """As `load`, with the message of an error in place of the error: the other kernels are measured anyway."""
        try:
            return self.load(), ""
        except Exception as error:
            return {}, f"build: {type(error).__name__}: {error}"

    def takes(self, dtype: str, shape: Shape | None = None) -> bool:
        """Whether it takes the dtype, and is timed on this shape."""
        return dtype in self.dtypes and (
            shape is None or self.largest is None or elements(shape) <= elements(self.largest)
        )


@dataclass(frozen=True)
class Operator:
    """A computation: its arguments and results, its reference and tolerance, and how it is measured.

    "The shape" is the operator's: (n,) elements, (rows, columns), or (m, n, k) of a product.
    """

    name: str  # in records
    arguments: Mapping[str, Callable[[Shape], Shape]]  # by name, as in messages: their shapes from the operator's
    # The computation in PyTorch: the peer `eager`, the input of torch.compile, in float64 the truth
    reference: Callable | None = None
    kernels: Sequence[Kernel] = ()  # its implementations, from the first lesson's to the fastest
    results: Sequence[Callable[[Shape], Shape]] = (whole,)  # for each output: its shape from the operator's
    result_dtype: str = ""  # of the results, if not the arguments'
    widened: Sequence[int] = ()  # positions of results that are float32 where the arguments have 16 bits
    exact: Callable | None = None  # the truth in float64, where `reference` cancels, overflows or adds up badly
    flops: Callable[[Shape], int] = elements  # floating-point operations
    read_again: Sequence[str] = ()  # arguments that must be read twice
    limit: str = "copy"  # "copy": records have bytes and of_copy; "cublas", "cudnn": flops, and the share of this peer
    # Of records.PEERS: makes the call; those of extensions.PACKAGES take part where they are installed
    peers: Mapping[str, Callable[[], Callable]] = field(default_factory=dict)
    dtypes: Sequence[str] = ("float32",)  # to measure
    # To measure with every peer, each in a fresh process; none: the operator is not measured
    shapes: Sequence[Shape] = ()
    sweep: Sequence[Shape] = ()  # to measure without torch.compile, for curves over the size
    sample: Sampler = UNIFORM  # (shapes of the arguments, dtype, device) -> random arguments
    accumulation: Callable[[Shape], int] = lambda shape: 1  # terms that an output element adds up, for the tolerance
    accumulation_timed: Callable[[Shape], int] | None = None  # for measured dtypes and shapes, if it differs
    # (compiler) -> the peer whose part torch.compile compiles, if not the whole `reference`
    compiled: Callable[[Callable[[Callable], Callable]], Callable] | None = None
    # For the tolerance of peers that round in between: the largest size of an intermediate result
    peer_slack: float = 0.0
    peer_sums: int = 0  # the same for sums: roundings in the dtype, of the size of a typical element of each output
    above_copy: str = ""  # why it can be faster than a copy of the same size
    elementwise: bool = False  # whether all arguments have one shape, and any shape will do
    at_size: Callable[[int], Shape] = lambda size: (size,)  # the shape that the contract tries for a size
    sizes: Sequence[int] = ()  # that the contract tries, if not its own
    spread: float = 3.0  # standard deviation of the contract's arguments

    def argument_shapes(self, shape: Shape) -> list[Shape]:
        return [of(shape) for of in self.arguments.values()]

    def inputs(self, shape: Shape, dtype: torch.dtype, device: torch.device | str) -> tuple[torch.Tensor, ...]:
        """Random arguments, the same at every call."""
        return self.sample(self.argument_shapes(shape), dtype, device)

    def bytes(self, shape: Shape, size: int) -> int:
        """Bytes that must move, with `size` bytes per element: each input read once, each output written once."""
        inputs = [*self.arguments.values(), *(self.arguments[name] for name in self.read_again)]
        of_result = getattr(torch, self.result_dtype).itemsize if self.result_dtype else size
        read, written = (sum(elements(of(shape)) for of in each) for each in (inputs, self.results))
        return size * read + of_result * written

    def dtype_of_results(self, dtype: torch.dtype) -> torch.dtype:
        """Of the results that are not widened, for arguments of this dtype."""
        return getattr(torch, self.result_dtype) if self.result_dtype else dtype

    def terms(self, shape: Shape, variant: str = "") -> int:
        """Terms that an output element adds up, for the tolerance of measured functions."""
        rough = max((kernel.rough for kernel in self.kernels if variant in kernel.variants), default=0)
        return max((self.accumulation_timed or self.accumulation)(shape), rough**2)

    @property
    def variants(self) -> list[str]:
        """The names of all functions to time."""
        return [variant for kernel in self.kernels for variant in kernel.variants]

    def load(self) -> tuple[dict[str, Callable], dict[str, str]]:
        """Builds all kernels to time. Returns variant -> function, and variant -> message for failed builds."""
        functions: dict[str, Callable] = {}
        failures: dict[str, str] = {}
        for kernel in self.kernels:
            built, why = kernel.attempt() if kernel.variants else ({}, "")
            functions |= built
            failures |= dict.fromkeys(kernel.variants, why) if why else {}
        return functions, failures

    def takes(self, variant: str, dtype: str, shape: Shape | None = None) -> bool:
        """Whether a variant takes this dtype, and is timed on this shape."""
        return any(kernel.takes(dtype, shape) for kernel in self.kernels if variant in kernel.variants)
