"""Lessons 01 to 03: a + b, a * b, a * b + c and its backward."""

import functools

import torch

from helpers.ladder.catalogue.entry import (
    FLOATING,
    MEASURED,
    THREE_STREAMS,
    Kernel,
    Launch,
    Operator,
    Shape,
    elements,
    whole,
)

N = 100_003  # odd, and more than a few blocks
LARGE = ((2**28,),)
SWEEP = tuple((2**k,) for k in range(12, 28))
STEP = "a first version of vector_add, which is under contract"
TWO = {"a": whole, "b": whole}
FLOAT32 = (Launch((N,)),)
EVERY_DTYPE = tuple(Launch((N,), dtype) for dtype in FLOATING)


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b


def two_flops(shape: Shape) -> int:
    return 2 * elements(shape)


elementwise = functools.partial(Operator, shapes=LARGE, above_copy=THREE_STREAMS, elementwise=True)
in_pybind = functools.partial(
    Kernel,
    function="elementwise_mult",
    global_name="elementwise_mult_kernel",
    not_differentiable="a plain function of a Python module: lesson 02 makes it differentiable",
    not_registered="a plain function of a Python module: it is not registered",
    python_module=True,
    slow_to_build=True,
)

VECTOR_ADD = elementwise(
    name="vector_add",
    arguments=TWO,
    reference=add,
    sweep=SWEEP,
    kernels=(
        Kernel(name="vector_add_simple", files=("vector_add.cu",), not_contracted=STEP, launches=FLOAT32),
        Kernel(name="vector_add_grid_stride", files=("vector_add.cu",), not_contracted=STEP, launches=FLOAT32),
        Kernel(
            name="vector_add",
            files=("vector_add.cu",),
            not_differentiable="forward only, and float32 only, which gradcheck cannot use",
            launches=(
                *FLOAT32,
                Launch((2**18,)),
                Launch((N,), first=1, kernel="vector_add_grid_stride_kernel"),  # not on 16 bytes
            ),
        ),
    ),
)

ELEMENTWISE_MULT = elementwise(
    name="elementwise_mult",
    arguments=TWO,
    reference=lambda a, b: a * b,
    sweep=SWEEP,
    kernels=(
        in_pybind(name="elementwise_mult.cu", variant="elementwise_mult_simple", files=("elementwise_mult.cu",)),
        in_pybind(
            name="elementwise_mult.cpp",
            files=("elementwise_mult.cpp", "elementwise_mult_kernel.cu"),
            library="elementwise_mult_split",
            dtypes=("float32", "float64"),
            not_timed="its kernel is the same; python -m helpers bench --overhead times its calls",
        ),
        Kernel(
            name="elementwise_mult",
            files=("elementwise_mult_stable.cu", "elementwise_mult_kernel.cu"),
            dtypes=("float32", "float64"),
            launches=(Launch((N,), "float64"), Launch((N,), "float32")),
        ),
    ),
)

FUSED_MULADD = elementwise(
    name="fused_muladd",
    arguments={**TWO, "c": whole},
    reference=lambda a, b, c: a * b + c,
    flops=two_flops,
    dtypes=MEASURED,
    sweep=SWEEP,
    accumulation=lambda shape: 2,  # in float64 the reference rounds the product, the kernel does not
    accumulation_timed=lambda shape: 1,
    peer_slack=4.0,  # eager rounds the product, which is at most 2 * 2
    kernels=(
        Kernel(
            name="fused_muladd",
            files=("fused_muladd.cu",),
            dtypes=FLOATING,
            launches=(*EVERY_DTYPE, Launch((N,), "float32", first=1)),
        ),
    ),
)

FUSED_MULADD_BACKWARD = elementwise(
    name="fused_muladd_backward",
    arguments={"grad": whole, **TWO},
    results=(whole, whole),
    reference=lambda grad, a, b: (grad * b, grad * a),
    flops=two_flops,
    kernels=(Kernel(name="fused_muladd_backward", files=("fused_muladd.cu",), dtypes=FLOATING, launches=EVERY_DTYPE),),
)

OPERATORS = (VECTOR_ADD, ELEMENTWISE_MULT, FUSED_MULADD, FUSED_MULADD_BACKWARD)
