"""What is measured of bias_gelu: forward, backward, and both in turn as a training step has them; PyTorch's and ours.

A step in PyTorch goes through autograd, which decides what forward keeps for backward; ours keeps its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from helpers.catalogue.triton_peers import triton_function

Pair = tuple[torch.Tensor, torch.Tensor]


def inputs(matrices: int) -> Callable:
    """Makes `matrices` matrices and a bias as long as their rows, uniformly random in [-2, 2)."""

    def make(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> tuple:
        torch.manual_seed(0)
        shapes = [shape] * matrices + [shape[-1:]]
        return tuple(torch.empty(s, dtype=dtype, device=device).uniform_(-2, 2) for s in shapes)

    return make


def bytes_moved(shape: tuple[int, ...], size: int, *, matrices: int, rows: int) -> int:
    """Matrices of a shape, and rows of it: what is read or written, each time that it has to be."""
    return size * (matrices * math.prod(shape) + rows * shape[-1])


def forward(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x + bias, approximate="tanh")


def backward(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> Pair:
    """What autograd runs after `forward`, and x + bias, which it would have kept: the fair peer is `step_of`."""
    grad_x = torch.ops.aten.gelu_backward(grad, x + bias, approximate="tanh")
    return grad_x, grad_x.reshape(-1, bias.numel()).sum(0)


def step_of(function: Callable) -> Callable:
    """(grad, x, bias) -> out, grad_x, grad_bias: `function(x, bias)` and its backward through autograd."""

    def step(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, bias = x.detach().requires_grad_(), bias.detach().requires_grad_()
        with torch.enable_grad():
            out = function(x, bias)
        return (out.detach(), *torch.autograd.grad(out, (x, bias), grad))

    return step


def our_step(suffix: str = "") -> Callable:
    """Takes the operators bias_gelu and bias_gelu_backward, with a suffix, from a library; returns the same step."""

    def make(ops) -> Callable:
        run, run_backward = (getattr(ops, f"bias_gelu{part}{suffix}").default for part in ("", "_backward"))
        return lambda grad, x, bias: (run(x, bias), *run_backward(grad, x, bias))

    return make


def triton_forward() -> Callable:
    return triton_function("bias_gelu_triton", "bias_gelu")


def triton_backward() -> Callable:
    return triton_function("bias_gelu_triton", "bias_gelu_backward")


def triton_step() -> Callable:
    run, run_backward = triton_forward(), triton_backward()
    return lambda grad, x, bias: (run(x, bias), *run_backward(grad, x, bias))
