"""One entry for each operator that is measured. A new operator is one more entry in OPERATORS.

The peers of every operator are `eager`, and torch.compile of the same function with static and with dynamic shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

import helpers

KERNELS = Path(__file__).resolve().parent.parent.parent / "kernels"
Shape = tuple[int, ...]
THREE_STREAMS = (
    "a copy is no upper limit: the data sheet's is higher, and work that reads more than it writes comes nearer to it"
)


@dataclass(frozen=True)
class Build:
    """One extension: files in kernels/, and which of its functions are measured, as variant -> function."""

    files: Sequence[str]
    variants: Mapping[str, str]
    is_python_module: bool = False  # a pybind11 module; otherwise operators that the library registers

    def load(self) -> dict[str, Callable]:
        """Builds it under the name of its first file. Returns variant -> function. Raises what helpers.load raises."""
        files = [KERNELS / file for file in self.files]
        module = helpers.load(name=files[0].stem, sources=files, is_python_module=self.is_python_module)
        functions = {variant: getattr(module, function) for variant, function in self.variants.items()}
        # An operator's overload is bound once: looking it up at each call costs microseconds.
        return {variant: getattr(function, "default", function) for variant, function in functions.items()}

    def attempt(self) -> tuple[dict[str, Callable], str]:
        """As `load`, with the message of what goes wrong, so that other builds are measured all the same."""
        try:
            return self.load(), ""
        except Exception as error:
            return {}, f"build: {type(error).__name__}: {error}"


@dataclass(frozen=True)
class Operator:
    """What it takes to measure an operator.

    name        of the records
    builds      of the variants that are measured
    inputs      (shape, dtype, device) -> the arguments: random data
    eager       the operator in PyTorch: the peer, also for torch.compile, and the reference when given float64
    bytes       (shape, bytes per element) -> bytes that must be moved: each input read once, each output written once
    flops       shape -> floating-point operations
    limit       "copy": bytes bound it, records carry bytes and of_copy; "cublas": FLOPs, records carry flops, of_cublas
    peers       more of them (`triton`, `cublas`): name -> function that makes the call
    shapes      measured with every peer, each in a fresh process
    sweep       measured without torch.compile, for curves over the size
    accumulation  terms added up for an output element, for the tolerance; see helpers.check
    peer_slack  what a peer may round in between: the largest size of an intermediate result, for its tolerance
    above_copy  why it can be faster than a copy of as many bytes
    """

    name: str
    builds: Sequence[Build]
    inputs: Callable[[Shape, torch.dtype, torch.device], tuple]
    eager: Callable
    flops: Callable[[Shape], int]
    bytes: Callable[[Shape, int], int]
    limit: str = "copy"
    peers: dict[str, Callable[[], Callable]] = field(default_factory=dict)
    dtypes: Sequence[str] = ("float32",)
    shapes: Sequence[Shape] = ((2**28,),)
    sweep: Sequence[Shape] = tuple((2**k,) for k in range(12, 28))
    accumulation: Callable[[Shape], int] = lambda shape: 1
    peer_slack: float = 0.0
    above_copy: str = ""

    def load(self) -> tuple[dict[str, Callable], dict[str, str]]:
        """Builds all variants. Returns variant -> function, and variant -> message for those that cannot be built."""
        functions: dict[str, Callable] = {}
        failures: dict[str, str] = {}
        for build in self.builds:
            built, why = build.attempt()
            functions |= built
            failures |= {variant: why for variant in build.variants if why}
        return functions, failures


def uniform(count: int) -> Callable[[Shape, torch.dtype, torch.device], tuple]:
    """`count` tensors of the shape, uniformly random in [-2, 2)."""

    def inputs(shape: Shape, dtype: torch.dtype, device: torch.device) -> tuple:
        torch.manual_seed(0)
        return tuple(torch.empty(shape, dtype=dtype, device=device).uniform_(-2, 2) for _ in range(count))

    return inputs


def same(*names: str) -> dict[str, str]:
    """Variants that are called as their functions are."""
    return {name: name for name in names}


def elements(shape: Shape) -> int:
    return torch.Size(shape).numel()


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b


def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a * b


def multiply_add(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return a * b + c


def multiply_add_backward(grad: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return grad * b, grad * a


OPERATORS = {
    operator.name: operator
    for operator in (
        Operator(
            name="vector_add",
            builds=[Build(["vector_add.cu"], same("vector_add", "vector_add_simple", "vector_add_grid_stride"))],
            inputs=uniform(2),
            eager=add,
            flops=elements,
            bytes=lambda shape, size: 3 * size * elements(shape),
            above_copy=THREE_STREAMS,
        ),
        Operator(
            name="elementwise_mult",
            builds=[
                Build(["elementwise_mult_kernel.cu", "elementwise_mult_stable.cu"], same("elementwise_mult")),
                Build(["elementwise_mult.cu"], {"elementwise_mult_simple": "elementwise_mult"}, is_python_module=True),
            ],
            inputs=uniform(2),
            eager=multiply,
            flops=elements,
            bytes=lambda shape, size: 3 * size * elements(shape),
            above_copy=THREE_STREAMS,
        ),
        Operator(
            name="fused_muladd",
            builds=[Build(["fused_muladd.cu"], same("fused_muladd"))],
            inputs=uniform(3),
            eager=multiply_add,
            flops=lambda shape: 2 * elements(shape),
            bytes=lambda shape, size: 4 * size * elements(shape),
            dtypes=("float32", "float16", "bfloat16"),
            peer_slack=4.0,  # eager rounds the product, which is at most 2 * 2
            above_copy=THREE_STREAMS,
        ),
        Operator(
            name="fused_muladd_backward",
            builds=[Build(["fused_muladd.cu"], same("fused_muladd_backward"))],
            inputs=uniform(3),
            eager=multiply_add_backward,
            flops=lambda shape: 2 * elements(shape),
            bytes=lambda shape, size: 5 * size * elements(shape),
            sweep=(),
            above_copy=THREE_STREAMS,
        ),
    )
}
