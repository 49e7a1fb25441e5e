"""One entry for each operator that is measured. A new operator is one more entry in OPERATORS.

The peers of every operator are `eager`, and torch.compile of the same function with static and with dynamic shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from helpers.build import flags as compiler_flags
from helpers.build import loader
from helpers.catalogue import bias_gelu, matmul, softmax
from helpers.machine.paths import KERNELS

Shape = tuple[int, ...]
THREE_STREAMS = (
    "a copy is no upper limit: the data sheet's is higher, and work that reads more than it writes comes nearer to it"
)
ONE_KERNEL = "a copy is a kernel like others: more bytes in flight can make another one somewhat faster"


@dataclass(frozen=True)
class Build:
    """One extension: files in kernels/, and which of its functions are measured, as variant -> function.

    A function is given by its name, or made by what is called with the extension.
    """

    files: Sequence[str]
    variants: Mapping[str, str | Callable]
    is_python_module: bool = False  # a pybind11 module; otherwise operators that the library registers
    flags: Sequence[str] = ()  # for nvcc
    name: str = ""  # by default that of its first file
    dtypes: Sequence[str] | None = None  # that it takes; by default all in which the operator is measured
    largest: Shape | None = None  # of the shapes that it is measured on, where larger ones take seconds a call

    def load(self) -> dict[str, Callable]:
        """Builds it. Returns variant -> function. Raises what helpers.load raises."""
        files = [KERNELS / file for file in self.files]
        module = loader.load(
            name=self.name or files[0].stem,
            sources=files,
            extra_cuda_cflags=list(self.flags),
            is_python_module=self.is_python_module,
        )
        functions = {
            variant: function(module) if callable(function) else getattr(module, function)
            for variant, function in self.variants.items()
        }
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
    compiled    what torch.compile is a part of, if not `eager` itself: called with a function that compiles one
    peer_slack  what a peer may round in between: the largest size of an intermediate result, for its tolerance
    peer_sums   the same where outputs are sums: roundings in the dtype, of the size of a typical element of each output
    rough       variants that are less exact and are to show what that gains -> roundings in float32, of the same size
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
    compiled: Callable[[Callable[[Callable], Callable]], Callable] | None = None
    peer_slack: float = 0.0
    peer_sums: int = 0
    rough: Mapping[str, int] = field(default_factory=dict)
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

    def takes(self, variant: str, dtype: str, shape: Shape | None = None) -> bool:
        """Whether a variant is one for this dtype, and is measured on this shape."""
        return all(
            (build.dtypes is None or dtype in build.dtypes)
            and (shape is None or build.largest is None or elements(shape) <= elements(build.largest))
            for build in self.builds
            if variant in build.variants
        )


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


def rungs(dtypes: Sequence[str], *names: str, flags: Sequence[str] = (), largest: Shape | None = None) -> list[Build]:
    """A build for each of these rungs of the matmul ladder."""
    return [
        Build([matmul.RUNGS[name]], same(name), flags=flags, name=name, dtypes=dtypes, largest=largest)
        for name in names
    ]


MATRICES = ((512, 4096), (32768, 8192))  # the first takes little more than its launch
MORE_MATRICES = ((256, 1024), (1024, 1024), (2048, 4096), (4096, 8192), (16384, 8192), (65536, 8192))
# The forms of kernels/include/gelu.h, as flags; with --use_fast_math tanhf is the hardware's tanh without a word.
SIGMOIDS = {
    "exp2": [],
    "tanhf": ["-DLADDER_SIGMOID=sigmoid_by_tanhf"],
    "tanh_approx": ["-DLADDER_SIGMOID=sigmoid_by_tanh_approx"],
    "fast_math": ["-DLADDER_SIGMOID=sigmoid_by_tanhf", "--use_fast_math"],
}

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
        Operator(
            name="bias_gelu",
            builds=[
                Build(["bias_gelu_float4.cu"], same("bias_gelu")),
                Build(["bias_gelu.cu"], same("bias_gelu_simple")),
                Build(["bias_gelu_half.cu"], same("bias_gelu_pairs")),
            ],
            inputs=bias_gelu.inputs(1),
            eager=bias_gelu.forward,
            flops=lambda shape: 11 * elements(shape),  # exp2 and the reciprocal counted as one each
            bytes=lambda shape, size: bias_gelu.bytes_moved(shape, size, matrices=2, rows=1),
            peers={"triton": bias_gelu.triton_forward},
            dtypes=("float32", "float16", "bfloat16"),
            shapes=MATRICES,
            sweep=MORE_MATRICES,
            accumulation=lambda shape: 2,
            peer_sums=2,
            above_copy=ONE_KERNEL,
        ),
        Operator(
            name="bias_gelu_sigmoids",
            builds=[
                Build(["bias_gelu_float4.cu"], {form: "bias_gelu"}, flags=flags, name=f"bias_gelu_by_{form}")
                for form, flags in SIGMOIDS.items()
            ],
            inputs=bias_gelu.inputs(1),
            eager=bias_gelu.forward,
            flops=lambda shape: 11 * elements(shape),
            bytes=lambda shape, size: bias_gelu.bytes_moved(shape, size, matrices=2, rows=1),
            dtypes=("float32", "float16", "bfloat16"),
            shapes=MATRICES[1:],
            sweep=(),
            accumulation=lambda shape: 2,
            peer_sums=2,
            rough={"tanh_approx": 200, "fast_math": 200},  # a relative error of tanh up to 2^-11, but seldom so large
            above_copy=ONE_KERNEL,
        ),
        Operator(
            name="bias_gelu_backward",
            builds=[
                Build(["bias_gelu_float4.cu"], same("bias_gelu_backward")),
                Build(["bias_gelu.cu"], same("bias_gelu_backward_simple")),
            ],
            inputs=bias_gelu.inputs(2),
            eager=bias_gelu.backward,
            flops=lambda shape: 20 * elements(shape),
            bytes=lambda shape, size: bias_gelu.bytes_moved(shape, size, matrices=3, rows=2),
            peers={"triton": bias_gelu.triton_backward},
            dtypes=("float32", "float16", "bfloat16"),
            shapes=MATRICES,
            sweep=MORE_MATRICES,
            accumulation=lambda shape: elements(shape[:-1]),
            peer_sums=4,
            above_copy=THREE_STREAMS,
        ),
        Operator(
            name="bias_gelu_training",
            builds=[
                Build(["bias_gelu_float4.cu"], {"bias_gelu_training": bias_gelu.our_step()}),
                Build(["bias_gelu.cu"], {"bias_gelu_training_simple": bias_gelu.our_step("_simple")}),
            ],
            inputs=bias_gelu.inputs(2),
            eager=bias_gelu.step_of(bias_gelu.forward),
            compiled=lambda compiler: bias_gelu.step_of(compiler(bias_gelu.forward)),
            flops=lambda shape: 31 * elements(shape),
            # Backward reads x and the bias again: between the two passes lies the rest of the model.
            bytes=lambda shape, size: bias_gelu.bytes_moved(shape, size, matrices=5, rows=3),
            peers={"triton": bias_gelu.triton_step},
            dtypes=("float32", "float16", "bfloat16"),
            shapes=MATRICES,
            sweep=(),
            accumulation=lambda shape: elements(shape[:-1]),
            peer_sums=4,
            above_copy=THREE_STREAMS,
        ),
        Operator(
            name="softmax",
            builds=[Build(["softmax.cu"], same("softmax"))],
            inputs=softmax.inputs,
            eager=softmax.over_rows,
            flops=lambda shape: 5 * elements(shape),  # the exponential counted as one
            bytes=softmax.bytes_moved,
            peers={"triton": softmax.triton},
            dtypes=("float32", "float16", "bfloat16"),
            shapes=((32768, 8192),),
            sweep=((32768, 256), (32768, 1024), (8192, 32768), (2048, 131072)),
            accumulation=lambda shape: 32,  # numbers that a lane adds up one after the other
            peer_sums=4,
            above_copy=ONE_KERNEL,
        ),
        Operator(
            name="matmul",
            builds=[
                *rungs(("float32", "bfloat16"), "matmul_naive", "matmul_coalesced", largest=matmul.CUBES[0]),
                Build(
                    ["matmul/03_tiled.cu"],
                    same("matmul_tiled_padded", "matmul_tiled"),
                    name="matmul_tiled",
                    largest=matmul.CUBES[0],
                ),
                *rungs(
                    ("float32",),
                    *("matmul_register_1d", "matmul_register_2d", "matmul_vectorised", "matmul_async"),
                ),
                Build(
                    ["matmul/08_warp_tile.cu"],
                    matmul.tiles("matmul_warp_tile", 7),
                    name="matmul_warp_tile",
                    dtypes=("float32",),
                ),
                *rungs(("bfloat16",), "matmul_wmma"),
                Build(["matmul/10_mma.cu"], matmul.tiles("matmul_mma", 6), name="matmul_mma", dtypes=("bfloat16",)),
                *rungs(("bfloat16",), "matmul_wgmma", "matmul_cluster", flags=compiler_flags.SM_90A),
            ],
            inputs=matmul.inputs,
            eager=matmul.product,
            flops=matmul.flops,
            bytes=matmul.bytes_moved,
            limit="cublas",
            peers={"cublas": matmul.cublas},
            dtypes=("float32", "bfloat16"),
            shapes=matmul.CUBES,
            sweep=matmul.SMALLER_CUBES,
            accumulation=matmul.roundings,
        ),
        Operator(
            name="matmul_bias_gelu",
            builds=[Build(["solutions/matmul_bias_gelu.cu"], same("matmul_bias_gelu"))],
            inputs=matmul.inputs_with_bias,
            eager=matmul.bias_gelu,
            flops=lambda shape: matmul.flops(shape) + 11 * elements(shape[:2]),  # as in bias_gelu
            bytes=lambda shape, size: matmul.bytes_moved(shape, size) + size * shape[1],
            limit="cublas",
            peers={"cublas": matmul.cublas_epilogue},
            dtypes=("float16", "bfloat16"),
            shapes=matmul.CUBES[:1],
            sweep=(),
            accumulation=matmul.roundings,
            peer_sums=4,  # eager rounds the sum before GELU
        ),
    )
}
