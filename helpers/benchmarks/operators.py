"""One entry for each operator that is measured. A new operator is one more entry in OPERATORS.

The peers of every operator are `eager`, and torch.compile of the same function with static and with dynamic shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

import helpers

KERNELS = Path(__file__).resolve().parent.parent.parent / "kernels"
Shape = tuple[int, ...]
THREE_STREAMS = (
    "the copy reads as much as it writes; this reads more than it writes, and DRAM is quicker at reading, since each "
    "change between reading and writing costs it time"
)


@dataclass(frozen=True)
class Operator:
    """What it takes to measure an operator.

    name        of the records, and of the kernel's namespace
    sources     files in kernels/; the first one registers or binds the variants
    variants    functions in it to measure, the best first
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
    sources: Sequence[str]
    variants: Sequence[str]
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
    is_python_module: bool = False

    def load(self) -> dict[str, Callable]:
        """Builds the kernels. Returns variant -> function. Raises what helpers.load raises."""
        paths = [KERNELS / source for source in self.sources]
        module = helpers.load(name=self.name, sources=paths, is_python_module=self.is_python_module)
        functions = {variant: getattr(module, variant) for variant in self.variants}
        # An operator's overload is bound once: looking it up at each call costs microseconds.
        return {name: getattr(function, "default", function) for name, function in functions.items()}


def uniform(count: int) -> Callable[[Shape, torch.dtype, torch.device], tuple]:
    """`count` tensors of the shape, uniformly random in [-2, 2)."""

    def inputs(shape: Shape, dtype: torch.dtype, device: torch.device) -> tuple:
        torch.manual_seed(0)
        return tuple(torch.empty(shape, dtype=dtype, device=device).uniform_(-2, 2) for _ in range(count))

    return inputs


def elements(shape: Shape) -> int:
    return torch.Size(shape).numel()


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b


def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a * b


def multiply_add(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return a * b + c


OPERATORS = {
    operator.name: operator
    for operator in (
        Operator(
            name="vector_add",
            sources=["vector_add.cu"],
            variants=["vector_add", "vector_add_simple", "vector_add_grid_stride"],
            inputs=uniform(2),
            eager=add,
            flops=elements,
            bytes=lambda shape, size: 3 * size * elements(shape),
            above_copy=THREE_STREAMS,
        ),
        Operator(
            name="elementwise_mult",
            sources=["elementwise_mult.cu"],
            variants=["elementwise_mult"],
            inputs=uniform(2),
            eager=multiply,
            flops=elements,
            bytes=lambda shape, size: 3 * size * elements(shape),
            above_copy=THREE_STREAMS,
            is_python_module=True,
        ),
        Operator(
            name="fused_muladd",
            sources=["fused_muladd.cu"],
            variants=["fused_muladd"],
            inputs=uniform(3),
            eager=multiply_add,
            flops=lambda shape: 2 * elements(shape),
            bytes=lambda shape, size: 4 * size * elements(shape),
            dtypes=("float32", "float16", "bfloat16"),
            peer_slack=4.0,  # eager rounds the product, which is at most 2 * 2
            above_copy=THREE_STREAMS,
        ),
    )
}
