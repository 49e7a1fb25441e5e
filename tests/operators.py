"""The operators under contract, a record each; see tests/contract.py.

A new operator is one more entry in OPERATORS. Fake kernels and autograd are registered here for those that come
without.
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch
from contract import Operator

import helpers

KERNELS = Path(__file__).resolve().parent.parent / "kernels"


@functools.cache
def library(name: str, *files: str):
    """The operators that the files in kernels/ register."""
    return helpers.load(name=name, sources=[KERNELS / file for file in files], is_python_module=False)


@functools.cache
def vector_add():
    """vector_add with a fake kernel; forward only."""
    op = library("vector_add", "vector_add.cu").vector_add.default
    torch.library.register_fake(op._schema.name)(lambda a, b: torch.empty_like(a))
    return op


@functools.cache
def elementwise_mult():
    """elementwise_mult with a fake kernel and a backward that is the operator itself."""
    op = library("elementwise_mult_stable", "elementwise_mult_stable.cu", "elementwise_mult_kernel.cu")
    op = op.elementwise_mult.default
    torch.library.register_fake(op._schema.name)(lambda a, b: torch.empty_like(a))

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad = grad.contiguous()
        return op(grad, b) if ctx.needs_input_grad[0] else None, op(grad, a) if ctx.needs_input_grad[1] else None

    torch.library.register_autograd(op._schema.name, backward, setup_context=_save_first_two)
    return op


@functools.cache
def fused_muladd():
    """fused_muladd and fused_muladd_backward, each with a fake kernel and a backward."""
    ops = library("fused_muladd", "fused_muladd.cu")
    op, op_backward = ops.fused_muladd.default, ops.fused_muladd_backward.default
    torch.library.register_fake(op._schema.name)(lambda a, b, c: torch.empty_like(a))
    torch.library.register_fake(op_backward._schema.name)(lambda g, a, b: (torch.empty_like(a), torch.empty_like(b)))

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        needs_a, needs_b, needs_c = ctx.needs_input_grad
        if needs_a and needs_b:
            grad_a, grad_b = op_backward(grad.contiguous(), a, b)
        else:
            grad_a, grad_b = grad * b if needs_a else None, grad * a if needs_b else None
        return grad_a, grad_b, grad if needs_c else None

    def save_all(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def double_backward(ctx, to_a, to_b):
        grad, a, b = ctx.saved_tensors
        return to_a * b + to_b * a, to_b * grad, to_a * grad

    torch.library.register_autograd(op._schema.name, backward, setup_context=_save_first_two)
    torch.library.register_autograd(op_backward._schema.name, double_backward, setup_context=save_all)
    return op


def _save_first_two(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])


def fused_muladd_backward():
    fused_muladd()  # registers for both
    return library("fused_muladd", "fused_muladd.cu").fused_muladd_backward.default


def pybind_module(name: str, *files: str):
    """A loader of the function elementwise_mult in the pybind11 module that the files define."""
    return lambda: helpers.load(name=name, sources=[KERNELS / file for file in files]).elementwise_mult


FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
PYBIND = {
    "gradients": "a plain function of a Python module: lesson 02 makes it differentiable",
    "registration": "a plain function of a Python module: it is not registered",
}

OPERATORS = [
    Operator(
        *("vector_add", vector_add, torch.add, ("a", "b")),
        overload=vector_add,
        excused={"gradients": "forward only, and float32 only, which gradcheck cannot use"},
    ),
    Operator(
        *("elementwise_mult", elementwise_mult, torch.mul, ("a", "b")),
        dtypes=(torch.float32, torch.float64),
        differentiable=elementwise_mult,
        overload=elementwise_mult,
    ),
    Operator(
        *("elementwise_mult.cu", pybind_module("elementwise_mult", "elementwise_mult.cu"), torch.mul, ("a", "b")),
        excused=PYBIND,
    ),
    Operator(
        "elementwise_mult.cpp",
        pybind_module("elementwise_mult_split", "elementwise_mult.cpp", "elementwise_mult_kernel.cu"),
        *(torch.mul, ("a", "b")),
        dtypes=(torch.float32, torch.float64),
        excused=PYBIND,
    ),
    Operator(
        *("fused_muladd", fused_muladd, lambda a, b, c: a * b + c, ("a", "b", "c")),
        dtypes=FLOATING,
        accumulation=lambda size: 2,
        differentiable=fused_muladd,
        overload=fused_muladd,
    ),
    Operator(
        "fused_muladd_backward",
        fused_muladd_backward,
        lambda grad, a, b: (grad * b, grad * a),
        ("grad", "a", "b"),
        dtypes=FLOATING,
        differentiable=fused_muladd_backward,
        overload=fused_muladd_backward,
    ),
]
