"""The operators under contract, a record each; see tests/contract.py.

A new operator is one more entry in OPERATORS. What makes it PyTorch's own (fake, autograd, vmap) is registered in
helpers/pytorch/operators.py.
"""

from __future__ import annotations

import math

import torch
from contract import Operator

import helpers
from helpers.pytorch import operators
from helpers.pytorch.operators import (
    BIAS_GELU,
    KERNELS,
    elementwise_mult,
    fused_muladd,
    fused_muladd_backward,
    vector_add,
)
from helpers.pytorch.operators import gelu_curvature as gelu_curvature
from helpers.pytorch.operators import library as library


def gelu_slope(z):
    """The derivative of GELU in its tanh form, at z; exact where PyTorch's own cancels or overflows."""
    u2 = 2 * (2 / torch.pi) ** 0.5 * z * (1 + 0.044715 * z * z)
    bounded = (z * z).clamp(max=1e4)  # beyond, the slope of the sigmoid is 0
    by_sigmoid = 2 * (2 / torch.pi) ** 0.5 * (1 + 3 * 0.044715 * bounded)
    return torch.sigmoid(u2) + z * (torch.sigmoid(u2) * torch.sigmoid(-u2)) * by_sigmoid


def bias_gelu_gradients(grad, x, bias):
    """grad_x and grad_bias of gelu_tanh(x + bias), in plain PyTorch."""
    grad_x = grad * gelu_slope(x + bias)
    return grad_x, grad_x.reshape(-1, bias.numel()).sum(0) if bias.numel() else torch.zeros_like(bias)


def bias_gelu(variant: str):
    return lambda: operators.bias_gelu(variant)


def bias_gelu_backward(variant: str):
    return lambda: operators.bias_gelu_backward(variant)


def bias_gelu_reference(x, bias):
    return torch.nn.functional.gelu(x + bias, approximate="tanh")


def rows_of(size: int) -> int:
    return 3 if size < 10_000 else 97


def matrix_and_bias(*, bias: int):
    """Makes arguments of a size: matrices of rows_of(size) rows and `size` elements or more; number `bias` is a row."""

    def make(size: int, dtype: torch.dtype, number: int) -> torch.Tensor:
        columns = size if size < 10_000 else size // rows_of(size)
        shape = (columns,) if number == bias else (rows_of(size), columns)
        values = torch.randn(shape, generator=torch.Generator().manual_seed(number), dtype=torch.float64)
        return (values.abs() * 10 if dtype in (torch.uint8, torch.bool) else values * 2).to(dtype)

    return make


def pybind_module(name: str, *files: str):
    """A loader of the function elementwise_mult in the pybind11 module that the files define."""
    return lambda: helpers.load(name=name, sources=[KERNELS / file for file in files]).elementwise_mult


MATMUL_SIZES = (0, 1, 7, 16, 17, 31, 32, 33, 63, 64, 65, 128, 129)


def matmul(rung: str):
    return lambda: operators.matmul(rung)


def inner(size: int) -> int:
    """What m is for a product of a size, and k is one more, n two more: of a size of 1,000 or more, its square root."""
    return size + 1 if size < 1000 else math.isqrt(size) + 1


def factors(size: int, dtype: torch.dtype, number: int) -> torch.Tensor:
    """The factors of a product: a of m x k and b of k x n numbers. All three sizes differ."""
    k = inner(size)
    values = torch.randn((k - 1, k) if number == 0 else (k, k + 1), generator=torch.Generator().manual_seed(number))
    return (values.abs() * 10 if dtype in (torch.uint8, torch.bool) else values).to(dtype)


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
    *(
        Operator(
            *(variant, bias_gelu(variant), bias_gelu_reference, ("x", "bias")),
            dtypes=FLOATING,
            make=matrix_and_bias(bias=1),
            elementwise=False,
            accumulation=lambda size: 2,
            differentiable=bias_gelu(variant),
            overload=bias_gelu(variant),
        )
        for variant in BIAS_GELU
    ),
    *(
        Operator(
            *(BIAS_GELU[variant][2], bias_gelu_backward(variant), bias_gelu_gradients, ("grad", "x", "bias")),
            dtypes=FLOATING,
            make=matrix_and_bias(bias=2),
            elementwise=False,
            accumulation=rows_of,
            differentiable=bias_gelu_backward(variant),
            overload=bias_gelu_backward(variant),
        )
        for variant in BIAS_GELU
    ),
    Operator(
        *("bias_gelu_pairs", operators.bias_gelu_pairs, bias_gelu_reference, ("x", "bias")),
        dtypes=FLOATING,
        make=matrix_and_bias(bias=1),
        elementwise=False,
        accumulation=lambda size: 2,
        overload=operators.bias_gelu_pairs,
        excused={"gradients": "forward only: bias_gelu has the backward"},
    ),
    *(
        Operator(
            *(rung, matmul(rung), torch.mm, ("a", "b")),
            dtypes=FLOATING,
            make=factors,
            elementwise=False,
            sizes=MATMUL_SIZES,
            accumulation=inner,
            differentiable=matmul(rung),
            overload=matmul(rung),
        )
        for rung in operators.MATMUL_WITH_GRADIENTS
    ),
    *(
        Operator(
            *(rung, matmul(rung), torch.mm, ("a", "b")),
            dtypes=dtypes,
            make=factors,
            elementwise=False,
            sizes=MATMUL_SIZES,
            accumulation=inner,
            overload=matmul(rung),
            excused={"gradients": "forward only, for row-major matrices: matmul_tiled has the backward"},
        )
        for rungs, dtypes in (
            (operators.MATMUL_FLOAT, (torch.float32,)),
            (operators.MATMUL_TENSOR_CORES, (torch.float16, torch.bfloat16)),
        )
        for rung in rungs
    ),
    Operator(
        *("softmax", operators.softmax, lambda x: torch.softmax(x, -1), ("x",)),
        dtypes=FLOATING,
        elementwise=False,
        accumulation=lambda size: 32,
        differentiable=operators.softmax,
        overload=operators.softmax,
    ),
]
