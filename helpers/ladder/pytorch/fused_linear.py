"""gelu(a @ b + bias) in one kernel of compute capability 9.0, with the backward that training needs.

Backward needs a @ b. Forward saves it, in bfloat16: 2mn bytes are written during the products, instead of 2mnk FLOPs
to compute it again. From there the course's bias_gelu_backward makes the gradients of the sums and of bias in one pass.
The two products that are left read matrices by columns, which the course's fast rungs do not: cuBLAS computes them.

    from helpers.ladder.pytorch import fused_linear
    linear_gelu = fused_linear.linear_gelu()
    y = linear_gelu(a, b, bias)   # a: m x k, b: k x n, bias: n elements, all bfloat16
"""

import functools
from collections.abc import Callable

import torch
from torch._ops import OpOverload as Overload

from helpers.ladder.catalogue.matmul import MATMUL_BIAS_GELU
from helpers.ladder.pytorch import operators
from helpers.ladder.pytorch.registration import first_class, looped


@functools.cache
def linear_gelu() -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """The function (a, b, bias) -> gelu(a @ b + bias), in its tanh form. Without gradients it saves nothing."""
    forward, saving = matmul_gelu(), matmul_gelu_saving()

    def call(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad or bias.requires_grad):
            return saving(a, b, bias)[0]
        return forward(a, b, bias)

    return call


@functools.cache
def matmul_gelu() -> Overload:
    """matmul_cluster_gelu(a, b, bias): forward only."""
    op = _extension().matmul_cluster_gelu.default
    return first_class(op, fake=lambda a, b, bias: a.new_empty(a.shape[0], b.shape[1]), vmap=looped(op))


@functools.cache
def matmul_gelu_saving() -> Overload:
    """matmul_cluster_gelu_saving(a, b, bias) -> gelu(a @ b + bias), a @ b: both differentiable."""
    op, of_bias_gelu = _extension().matmul_cluster_gelu_saving.default, operators.bias_gelu_backward()

    def backward(ctx, grad, grad_sums):
        a, b, bias, sums = ctx.saved_tensors
        needs_a, needs_b, needs_bias = ctx.needs_input_grad
        grad_bias = None
        if grad is not None:
            through, grad_bias = of_bias_gelu(grad.contiguous(), sums, bias)
            grad_sums = through if grad_sums is None else through + grad_sums
        if grad_sums is None:
            return None, None, None
        return (
            grad_sums @ b.t() if needs_a else None,
            a.t() @ grad_sums if needs_b else None,
            grad_bias if needs_bias else None,
        )

    return first_class(
        op,
        fake=lambda a, b, bias: tuple(a.new_empty(a.shape[0], b.shape[1]) for _ in range(2)),
        backward=backward,
        save=lambda inputs, output: (*inputs, output[1]),
        zeros=False,  # of m * n elements, for sums that nothing else reads
        vmap=looped(op),
    )


def _extension():
    return next(kernel for kernel in MATMUL_BIAS_GELU.kernels if kernel.name == "matmul_cluster_gelu").extension()
