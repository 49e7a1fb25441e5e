"""Lessons 04 to 06: gelu(x + bias) in its tanh form, its backward, and both one after the other, as in training.

A training step in PyTorch uses autograd, which decides what forward saves for backward; ours saves its inputs.
"""

import functools
from collections.abc import Callable

import torch

from helpers.ladder.catalogue.entry import (
    FLOATING,
    MEASURED,
    ONE_KERNEL,
    THREE_STREAMS,
    Kernel,
    Launch,
    Operator,
    Shape,
    elements,
    row,
    whole,
)
from helpers.ladder.catalogue.extensions import triton_function

MATRICES = ((512, 4096), (32768, 8192))  # the first takes little longer than its launch
MORE_MATRICES = ((256, 1024), (1024, 1024), (2048, 4096), (4096, 8192), (8192, 8192), (16384, 8192), (65536, 8192))
COUNTED = (Launch((60, 1000), "float32"), Launch((60, 1000), "float16"))
# The forms of kernels/include/gelu.h, as flags; --use_fast_math silently replaces tanhf by the hardware's tanh.
SIGMOIDS = {
    "exp2": (),
    "tanhf": ("-DLADDER_SIGMOID=sigmoid_by_tanhf",),
    "tanh_approx": ("-DLADDER_SIGMOID=sigmoid_by_tanh_approx",),
    "fast_math": ("-DLADDER_SIGMOID=sigmoid_by_tanhf", "--use_fast_math"),
}
ROUGH = {"tanh_approx": 2048, "fast_math": 2048}  # a relative error of tanh up to 2^-11, in units of 2^-22

Pair = tuple[torch.Tensor, torch.Tensor]


def forward(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x + bias, approximate="tanh")


def backward(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> Pair:
    """What autograd runs after `forward`, plus x + bias, which autograd would save: `step_of` is the fair peer."""
    grad_x = torch.ops.aten.gelu_backward(grad, x + bias, approximate="tanh")
    return grad_x, grad_x.reshape(-1, bias.numel()).sum(0)


def slope(z: torch.Tensor) -> torch.Tensor:
    """The derivative of GELU in its tanh form, at z; exact where PyTorch's own cancels or overflows."""
    u2 = 2 * (2 / torch.pi) ** 0.5 * z * (1 + 0.044715 * z * z)
    bounded = (z * z).clamp(max=1e4)  # beyond, the slope of the sigmoid is 0
    by_sigmoid = 2 * (2 / torch.pi) ** 0.5 * (1 + 3 * 0.044715 * bounded)
    return torch.sigmoid(u2) + z * (torch.sigmoid(u2) * torch.sigmoid(-u2)) * by_sigmoid


def gradients(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> Pair:
    """The same as `backward`, but exact for all inputs."""
    grad_x = grad * slope(x + bias)
    return grad_x, grad_x.reshape(-1, bias.numel()).sum(0) if bias.numel() else torch.zeros_like(bias)


def step_of(function: Callable) -> Callable:
    """(grad, *inputs) -> out and the gradients of all inputs: `function(*inputs)` and its backward through autograd."""

    def step(grad: torch.Tensor, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inputs = tuple(x.detach().requires_grad_() for x in inputs)
        with torch.enable_grad():
            out = function(*inputs)
        return (out.detach(), *torch.autograd.grad(out, inputs, grad))

    return step


def our_step(suffix: str = "") -> Callable:
    """Takes the operators bias_gelu and bias_gelu_backward, with a suffix, from a library; returns the same step."""

    def make(ops) -> Callable:
        run, run_backward = (getattr(ops, f"bias_gelu{part}{suffix}").default for part in ("", "_backward"))
        return lambda grad, x, bias: (run(x, bias), *run_backward(grad, x, bias))

    return make


triton_forward = functools.partial(triton_function, "bias_gelu_triton", "bias_gelu")
triton_backward = functools.partial(triton_function, "bias_gelu_triton", "bias_gelu_backward")


def triton_step() -> Callable:
    run, run_backward = triton_forward(), triton_backward()
    return lambda grad, x, bias: (run(x, bias), *run_backward(grad, x, bias))


def at_size(size: int) -> Shape:
    """Three rows of `size` elements, or 97 rows with about `size` elements in total."""
    return (3, size) if size < 10_000 else (97, size // 97)


def rows(shape: Shape) -> int:
    return elements(shape[:-1])


def terms(shape: Shape) -> int:
    """Of an element of grad_bias: for each row of its column, two terms in x + bias times two in the slope of GELU."""
    return 4 * rows(shape)


AGAIN = "a kernel of bias_gelu or its backward, built or called in another way"

on_matrices = functools.partial(
    Operator, dtypes=MEASURED, shapes=MATRICES, at_size=at_size, spread=2.0, peer_sums=4, above_copy=THREE_STREAMS
)
forward_on_matrices = functools.partial(
    on_matrices,
    arguments={"x": whole, "bias": row},
    reference=forward,
    flops=lambda shape: 11 * elements(shape),  # exp2 and the reciprocal counted as one each
    accumulation=lambda shape: 2,
    peer_sums=2,
    above_copy=ONE_KERNEL,
)
simple = functools.partial(Kernel, files=("bias_gelu.cu",), dtypes=FLOATING)
in_vectors = functools.partial(Kernel, files=("bias_gelu_float4.cu",), dtypes=FLOATING)

BIAS_GELU = forward_on_matrices(
    name="bias_gelu",
    peers={"triton": triton_forward},
    shapes=(*MATRICES, (8192, 8192)),  # lessons 04 to 06 measure the last one
    sweep=MORE_MATRICES,
    kernels=(
        simple(name="bias_gelu_simple", backward="bias_gelu_backward_simple", launches=COUNTED),
        Kernel(
            name="bias_gelu_pairs",
            files=("bias_gelu_half.cu",),
            dtypes=FLOATING,
            not_differentiable="forward only: bias_gelu has the backward",
            launches=COUNTED,
        ),
        in_vectors(
            name="bias_gelu",
            backward="bias_gelu_backward",
            launches=(
                *COUNTED,
                Launch((60, 1001), "float32"),
                Launch((60, 1001), "float16"),
                Launch((60, 1000), "float32", first=1),
            ),
        ),
    ),
)

BIAS_GELU_SIGMOIDS = forward_on_matrices(
    name="bias_gelu_sigmoids",
    shapes=MATRICES[1:],
    kernels=tuple(
        in_vectors(
            name=form,
            function="bias_gelu",
            library=f"bias_gelu_by_{form}",
            flags=flags,
            rough=ROUGH.get(form, 0),
            not_contracted=AGAIN,
        )
        for form, flags in SIGMOIDS.items()
    ),
)

BIAS_GELU_BACKWARD = on_matrices(
    name="bias_gelu_backward",
    arguments={"grad": whole, "x": whole, "bias": row},
    results=(whole, row),
    reference=backward,
    exact=gradients,
    flops=lambda shape: 20 * elements(shape),
    peers={"triton": triton_backward},
    sweep=MORE_MATRICES,
    accumulation=terms,
    kernels=(
        simple(name="bias_gelu_backward_simple", launches=COUNTED),  # not its second kernel, which adds up grad_bias
        in_vectors(name="bias_gelu_backward", launches=COUNTED),
    ),
)

BIAS_GELU_TRAINING = on_matrices(
    name="bias_gelu_training",
    arguments=BIAS_GELU_BACKWARD.arguments,
    results=(whole, whole, row),
    reference=step_of(forward),
    compiled=lambda compiler: step_of(compiler(forward)),
    flops=lambda shape: 31 * elements(shape),
    read_again=("x", "bias"),  # by backward: between the two passes lies the rest of the model
    peers={"triton": triton_step},
    accumulation=terms,
    kernels=(
        simple(name="bias_gelu_training_simple", function=our_step("_simple"), not_contracted=AGAIN),
        in_vectors(name="bias_gelu_training", function=our_step(), not_contracted=AGAIN),
    ),
)

OPERATORS = (BIAS_GELU, BIAS_GELU_SIGMOIDS, BIAS_GELU_BACKWARD, BIAS_GELU_TRAINING)
