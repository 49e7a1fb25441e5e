"""The course's operators as PyTorch's own: built, and registered with what their C++ files leave out.

Lesson 09 says what that takes; helpers/pytorch/registration.py does it. Each function here builds on its first call.

    from helpers import operators
    mult = operators.elementwise_mult()   # torch.ops.elementwise_mult_stable.elementwise_mult.default
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from helpers.build import loader
from helpers.catalogue.matmul import RUNGS, needs_hopper
from helpers.machine.paths import KERNELS
from helpers.pytorch.registration import Overload, batched_elementwise, first_class, looped


@functools.cache
def library(name: str, *files: str) -> Any:
    """The namespace of torch.ops that the files in kernels/ register, built under `name`. Raises as helpers.load."""
    return loader.load(name=name, sources=[KERNELS / file for file in files], is_python_module=False)


# ----------------------------------------------------------------------------------------------------------------------
# Lessons 01 to 03


@functools.cache
def vector_add() -> Overload:
    """vector_add(a, b): float32, forward only."""
    op = library("vector_add", "vector_add.cu").vector_add.default
    return first_class(op, fake=lambda a, b: torch.empty_like(a), vmap=batched_elementwise(op))


@functools.cache
def elementwise_mult() -> Overload:
    """elementwise_mult(a, b): float32 and float64. Its backward is two more products, so it needs no other operator."""
    op = library("elementwise_mult_stable", "elementwise_mult_stable.cu", "elementwise_mult_kernel.cu")
    op = op.elementwise_mult.default

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad = grad.contiguous()
        return op(grad, b) if ctx.needs_input_grad[0] else None, op(grad, a) if ctx.needs_input_grad[1] else None

    return first_class(
        op,
        fake=lambda a, b: torch.empty_like(a),
        backward=backward,
        save=lambda inputs, output: inputs,
        vmap=batched_elementwise(op),
    )


@functools.cache
def fused_muladd() -> Overload:
    """fused_muladd(a, b, c): every floating dtype. Where both gradients are due, backward is fused_muladd_backward."""
    op, op_backward = library("fused_muladd", "fused_muladd.cu").fused_muladd.default, fused_muladd_backward()

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        needs_a, needs_b, needs_c = ctx.needs_input_grad
        if needs_a and needs_b:
            grad_a, grad_b = op_backward(grad.contiguous(), a, b)
        else:
            grad_a, grad_b = grad * b if needs_a else None, grad * a if needs_b else None
        return grad_a, grad_b, grad if needs_c else None

    return first_class(
        op,
        fake=lambda a, b, c: torch.empty_like(a),
        backward=backward,
        save=lambda inputs, output: inputs[:2],
        vmap=batched_elementwise(op),
    )


@functools.cache
def fused_muladd_backward() -> Overload:
    """fused_muladd_backward(grad, a, b) -> grad_a, grad_b; itself differentiable, in plain PyTorch."""
    op = library("fused_muladd", "fused_muladd.cu").fused_muladd_backward.default

    def backward(ctx, to_a, to_b):
        grad, a, b = ctx.saved_tensors
        return to_a * b + to_b * a, to_b * grad, to_a * grad

    return first_class(
        op,
        fake=lambda grad, a, b: (torch.empty_like(a), torch.empty_like(b)),
        backward=backward,
        save=lambda inputs, output: inputs,
        vmap=batched_elementwise(op),
    )


# ----------------------------------------------------------------------------------------------------------------------
# Lessons 04 to 06

# name -> file, forward, backward
BIAS_GELU = {
    "bias_gelu_simple": ("bias_gelu.cu", "bias_gelu_simple", "bias_gelu_backward_simple"),
    "bias_gelu": ("bias_gelu_float4.cu", "bias_gelu", "bias_gelu_backward"),
}


def bias_gelu(variant: str = "bias_gelu") -> Overload:
    """bias_gelu(x, bias): every floating dtype. `variant` is a name in BIAS_GELU."""
    return _bias_gelu_pair(*BIAS_GELU[variant])[0]


def bias_gelu_backward(variant: str = "bias_gelu") -> Overload:
    """bias_gelu_backward(grad, x, bias) -> grad_x, grad_bias; itself differentiable."""
    return _bias_gelu_pair(*BIAS_GELU[variant])[1]


@functools.cache
def bias_gelu_pairs() -> Overload:
    """bias_gelu_pairs(x, bias): every floating dtype, forward only."""
    op = library("bias_gelu_half", "bias_gelu_half.cu").bias_gelu_pairs.default
    return first_class(op, fake=lambda x, bias: torch.empty_like(x), vmap=_batched_rows(op))


@functools.cache
def _bias_gelu_pair(file: str, forward: str, backward: str) -> tuple[Overload, Overload]:
    ops = library(file.removesuffix(".cu"), file)
    op, op_backward = getattr(ops, forward).default, getattr(ops, backward).default

    def first(ctx, grad):
        return op_backward(grad.contiguous(), *ctx.saved_tensors)

    def second(ctx, to_x, to_bias):
        grad, x, bias = ctx.saved_tensors
        both = (to_x + to_bias).contiguous()  # what each element of grad_x is worth, through either output
        grad_z = both * grad * gelu_curvature(x + bias)
        return op_backward(both, x, bias)[0], grad_z, grad_z.reshape(-1, bias.numel()).sum(0)

    first_class(
        op,
        fake=lambda x, bias: torch.empty_like(x),
        backward=first,
        save=lambda inputs, output: inputs,
        vmap=_batched_rows(op),
    )
    first_class(
        op_backward,
        fake=lambda grad, x, bias: (torch.empty_like(x), torch.empty_like(bias)),
        backward=second,
        save=lambda inputs, output: inputs,
        vmap=looped(op_backward),
    )
    return op, op_backward


def _batched_rows(op: Overload) -> Callable:
    """The vmap rule of op(x, bias): with one bias for all, a batch is only more rows."""
    one_by_one = looped(op)

    def rule(info: Any, in_dims: Sequence[int | None], x: torch.Tensor, bias: torch.Tensor):
        if in_dims[1] is None:
            return op(x.movedim(in_dims[0], 0).contiguous(), bias), 0
        return one_by_one(info, in_dims, x, bias)

    return rule


# ----------------------------------------------------------------------------------------------------------------------
# Lessons 07 and 08

MATMUL = {rung: file for rung, file in RUNGS.items() if not needs_hopper(rung)}
MATMUL_WITH_GRADIENTS = tuple(MATMUL)[:4]  # those that read transposed views, and take every floating dtype
MATMUL_FLOAT = tuple(MATMUL)[4:9]  # row-major float32
MATMUL_TENSOR_CORES = tuple(MATMUL)[9:]  # row-major float16 and bfloat16


@functools.cache
def matmul(rung: str = "matmul_tiled") -> Overload:
    """a @ b by a rung of the ladder, a name in MATMUL. Those in MATMUL_WITH_GRADIENTS are differentiable."""
    file = MATMUL[rung]
    op = getattr(library(rung, file), rung).default

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        needs_a, needs_b = ctx.needs_input_grad
        return op(grad, b.t()) if needs_a else None, op(a.t(), grad) if needs_b else None

    differentiable = {"backward": backward, "save": lambda inputs, output: inputs}
    return first_class(
        op,
        fake=lambda a, b: a.new_empty(a.shape[0], b.shape[1]),
        vmap=looped(op),
        **(differentiable if rung in MATMUL_WITH_GRADIENTS else {}),
    )


def gelu_curvature(z: torch.Tensor) -> torch.Tensor:
    """The second derivative of GELU in its tanh form."""
    c, k = (2 / torch.pi) ** 0.5, 0.044715
    t = torch.tanh(c * (z + k * z**3))
    inner, inner_slope = c * (1 + 3 * k * z * z), 6 * c * k * z
    return (1 - t * t) * (inner + z * inner_slope / 2 - z * t * inner * inner)


# ----------------------------------------------------------------------------------------------------------------------
# Lesson 12


@functools.cache
def softmax() -> Overload:
    """softmax(x) over the last dimension: every floating dtype. Its backward is in plain PyTorch."""
    op = library("softmax", "softmax.cu").softmax.default

    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        weighted = grad * out
        return weighted - out * weighted.sum(-1, keepdim=True)

    return first_class(
        op,
        fake=lambda x: torch.empty_like(x),
        backward=backward,
        save=lambda inputs, output: (output,),
        vmap=batched_elementwise(op),  # more rows
    )
