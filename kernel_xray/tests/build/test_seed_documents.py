"""The code of five published tutorials, loaded by `load` and `load_inline` and compared with PyTorch.

The C++ lies in `seed_documents/NNN_*`, each document's text with its repairs marked. The Python of the documents is
here. Three changes are made throughout: `device="cuda"` is `kernel_xray.device`, `load` comes from `kernel_xray`, and
`assert` or `torch.testing` replaces a printed result of `allclose`.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from simt_programs import side_by_side
from torch.autograd import gradcheck

import kernel_xray

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent / "seed_documents"

BUILDS = {
    "000": lambda: _load("elementwise_mult", "000_elementwise_mult.cu", extra_cuda_cflags=["-O3", "--use_fast_math"]),
    "001": lambda: _load("my_cuda_op", "001_fused_muladd.cu", verbose=True),
    "001 inline": lambda: kernel_xray.load_inline(
        name="scale_ext",
        cpp_sources="""
            void scale_cuda(torch::Tensor x, float scale);
            void matrix_cuda(torch::Tensor x);
            torch::Tensor my_op_cuda(torch::Tensor input);
            torch::Tensor my_op_bfloat16_cuda(torch::Tensor input);
        """,
        cuda_sources=(HERE / "001_inline.cu").read_text(),
        functions=["scale_cuda", "matrix_cuda", "my_op_cuda", "my_op_bfloat16_cuda"],
    ),
    "002": lambda: _load("naive_matmul", "002_matmul.cu", extra_cuda_cflags=["-O3"], verbose=True),
    "002 island": lambda: _load("vector_add_ext", "002_binding.cpp", "002_vector_add.cu"),
    "003": lambda: _load("CustomPyTorchCUDAKernelBackend", "003_bind.cpp", "003_sum.cu"),
    "004": lambda: _load(
        "fused_bias_gelu", "004_fused_bias_gelu.cpp", "004_fused_bias_gelu_cuda.cu", extra_cuda_cflags=["-O3"]
    ),
}


def _load(name, *sources, **options):
    return kernel_xray.load(name=name, sources=[str(HERE / source) for source in sources], **options)


@pytest.fixture(scope="module")
def built():
    """A function from a key of BUILDS to its module. All are built; a failure fails its own tests."""
    # Longest first: those with two translation units of torch/extension.h.
    order = sorted(BUILDS, key=lambda key: key not in ("004", "001 inline"))
    with side_by_side(lambda key: BUILDS[key](), order) as modules:
        yield modules


def randn(*shape, **options):
    return torch.randn(*shape, device=kernel_xray.device, **options)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# ----------------------------------------------------------------------------------------------------------------------
# 000: element-wise multiplication and its autograd.Function


def multiply_function(extension):
    class ElementwiseMultFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            if a.device.type != kernel_xray.device.type or b.device.type != kernel_xray.device.type:
                raise TypeError("Inputs must be CUDA tensors!")
            if a.shape != b.shape:
                raise ValueError("Input tensors must have the same shape!")
            if a.dtype != torch.float32:
                raise TypeError("Input tensors must be of float32 type!")
            output = torch.empty_like(a)
            extension.elementwise_mult(a, b, output)
            ctx.save_for_backward(a, b)
            return output

        @staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors
            grad_a = grad_b = None
            if ctx.needs_input_grad[0]:
                grad_a = grad_output * b
            if ctx.needs_input_grad[1]:
                grad_b = grad_output * a
            return grad_a, grad_b

    return ElementwiseMultFunction.apply


@pytest.mark.parametrize("shape", [(1000,), (10, 100), (1,), (257,)])
def test_000_multiplies(built, shape):
    a, b = randn(*shape), randn(*shape)
    result = torch.full_like(a, float("nan"))
    built("000").elementwise_mult(a, b, result)
    assert torch.equal(result, a * b)


def test_000_differentiates(built):
    elementwise_mult = multiply_function(built("000"))
    a, b = randn(10, 100, requires_grad=True), randn(10, 100, requires_grad=True)
    elementwise_mult(a, b).sum().backward()
    assert torch.equal(a.grad, b)
    assert torch.equal(b.grad, a)
    frozen = randn(10, 100)
    elementwise_mult(frozen, b).sum().backward()
    assert frozen.grad is None
    assert torch.equal(b.grad, a + frozen)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (torch.ones(4, dtype=torch.float64), torch.ones(4), "a must be of float type!"),
        (torch.ones(4), torch.ones(5), "Input tensors must have the same number of elements!"),
        (torch.ones(4, 2).t(), torch.ones(2, 4), "a must be contiguous!"),
    ],
)
def test_000_refuses(built, a, b, message):
    a, b = a.to(kernel_xray.device), b.to(kernel_xray.device)
    with pytest.raises(RuntimeError, match=message):
        built("000").elementwise_mult(a, b, torch.empty(4, device=kernel_xray.device))


# ----------------------------------------------------------------------------------------------------------------------
# 001: fused multiply-add, load_inline, a 2-D kernel, dispatch over dtypes


def muladd_function(extension):
    class FusedMulAdd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, c):
            ctx.save_for_backward(a, b, c)
            return extension.fused_muladd(a, b, c)

        @staticmethod
        def backward(ctx, grad_output):
            a, b, _ = ctx.saved_tensors
            return grad_output * b, grad_output * a, grad_output.clone()

    return FusedMulAdd.apply


def test_001_fused_muladd(built):
    a = torch.ones(1024, device=kernel_xray.device)
    assert torch.equal(built("001").fused_muladd(a, a, a), torch.full_like(a, 2.0))  # the document prints 3
    a, b, c = randn(3, 77), randn(3, 77), randn(3, 77)
    torch.testing.assert_close(built("001").fused_muladd(a, b, c), a * b + c)
    with pytest.raises(RuntimeError, match="All inputs must have the same shape"):
        built("001").fused_muladd(a, b, c[:2])


@pytest.mark.filterwarnings("ignore:Input #:UserWarning")  # that they are not float64
def test_001_gradients(built):
    fused_muladd = muladd_function(built("001"))
    inputs = [randn(16, requires_grad=True) for _ in range(3)]
    # The document runs gradcheck in double precision on an operator that takes float32 alone.
    with pytest.raises(RuntimeError, match="Only float32 supported"):
        gradcheck(fused_muladd, [x.double() for x in inputs])
    # Linear in each input, so a large step keeps float32 differences exact enough.
    assert gradcheck(fused_muladd, inputs, eps=0.25, atol=1e-3, rtol=1e-3)


def test_001_load_inline(built):
    extension = built("001 inline")
    x = randn(1000)
    expected = x * 2.5
    extension.scale_cuda(x, 2.5)
    assert torch.equal(x, expected)
    matrix = torch.full((35, 50), -1.0, device=kernel_xray.device)
    extension.matrix_cuda(matrix)
    rows, columns = torch.meshgrid(torch.arange(35.0), torch.arange(50.0), indexing="ij")
    assert torch.equal(matrix.cpu(), 100 * rows + columns)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_001_dispatch(built, dtype):
    x = randn(300).to(dtype)
    expected = (x.double() * x.double() + 1).to(dtype)
    torch.testing.assert_close(built("001 inline").my_op_bfloat16_cuda(x), expected)
    if dtype == torch.bfloat16:  # not among the types of AT_DISPATCH_FLOATING_TYPES_AND_HALF
        with pytest.raises(RuntimeError, match="\"my_op_cuda\" not implemented for 'BFloat16'"):
            built("001 inline").my_op_cuda(x)
    else:
        torch.testing.assert_close(built("001 inline").my_op_cuda(x), expected, rtol=2**-8, atol=1e-5)  # rounds twice


# ----------------------------------------------------------------------------------------------------------------------
# 002: matrix product by pybind11 and by TORCH_LIBRARY, autograd, a module; pybind11 with NumPy


def matmul_function(extension):
    class NaiveMatmul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return extension.matmul(a, b)

        @staticmethod
        def backward(ctx, grad_out):
            a, b = ctx.saved_tensors
            return grad_out @ b.t(), a.t() @ grad_out

    return NaiveMatmul.apply


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("binding", ["pybind11", "torch library"])
def test_002_matmul(built, binding, dtype):
    extension = built("002")
    matmul = extension.matmul if binding == "pybind11" else torch.ops.naive.matmul
    a, b = randn(33, 20, dtype=dtype), randn(20, 17, dtype=dtype)
    torch.testing.assert_close(matmul(a, b), (a.double() @ b.double()).to(dtype), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(matmul(b.t(), a.t()), (a.double() @ b.double()).t().to(dtype), rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError, match="inner dimensions must match"):
        matmul(a, a)


def test_002_gradcheck(built):
    naive_matmul = matmul_function(built("002"))
    A = randn(64, 32, dtype=torch.double, requires_grad=True)
    B = randn(32, 16, dtype=torch.double, requires_grad=True)
    assert gradcheck(naive_matmul, (A, B), fast_mode=True)
    assert gradcheck(naive_matmul, (A[:5, :4], B[:4, :3]))  # each element by itself
    Af, Bf = A.detach().float(), B.detach().float()
    assert torch.allclose(naive_matmul(Af, Bf), Af @ Bf, rtol=1e-3, atol=1e-3)


def test_002_module(built):
    naive_matmul = matmul_function(built("002"))

    class NaiveLinear(torch.nn.Module):
        def __init__(self, in_f, out_f):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(in_f, out_f, device=kernel_xray.device))

        def forward(self, x):
            return naive_matmul(x, self.weight)

    layer, x = NaiveLinear(12, 5), randn(7, 12)
    layer(x).square().sum().backward()
    torch.testing.assert_close(layer.weight.grad, x.t() @ (2 * (x @ layer.weight.detach())), rtol=1e-4, atol=1e-4)


def test_002_numpy_island(built):
    a, b = np.random.default_rng(0).standard_normal((2, 1000), dtype=np.float32)
    c = np.zeros(1000, np.float32)
    built("002 island").vector_add(a, b, c)
    assert np.array_equal(c, a + b)
    with pytest.raises(RuntimeError, match="arrays must have the same size"):
        built("002 island").vector_add(a, b, c[:10])


# ----------------------------------------------------------------------------------------------------------------------
# 003: vector addition, split over a .cu and a .cpp file


@pytest.mark.parametrize("n", [1, 4, 127, 128, 129, 4096 * 128 + 5])
def test_003_adds(built, n):
    a, b = randn(n), randn(n)
    # The document's call, add_gpu(a, b), does not fit its binding: AddGPU takes the result too, and resizes it.
    guarded = torch.full((n + 1,), -7.0, device=kernel_xray.device)
    c = guarded[:0]
    built("003").AddGPU(a, b, c)
    assert torch.equal(c, a + b)
    assert guarded[n] == -7.0  # nothing was written past the end
    with pytest.raises(ValueError, match="Size mismatch"):
        built("003").AddGPU(a, b[1:], c)


# ----------------------------------------------------------------------------------------------------------------------
# 004: fused bias and GELU


def gelu_function(fused_op):
    class FusedBiasGELU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, bias):
            ctx.save_for_backward(input, bias)
            return fused_op.forward(input, bias)

        @staticmethod
        def backward(ctx, grad_output):
            input, bias = ctx.saved_tensors
            grad_input = fused_op.backward(grad_output.contiguous(), input, bias)
            grad_bias = grad_input.sum(dim=tuple(range(grad_input.dim() - 1)))
            return grad_input, grad_bias

    return FusedBiasGELU.apply


def unfused_bias_gelu(x, bias):
    return F.gelu(x + bias, approximate="tanh")


@pytest.mark.parametrize("shape", [(512, 96), (3, 5, 7), (1, 1)])
def test_004_forward_and_backward(built, shape):
    fused = gelu_function(built("004"))
    x, bias = randn(*shape, requires_grad=True), randn(shape[-1], requires_grad=True)
    weight = randn(*shape)
    torch.testing.assert_close(fused(x, bias), unfused_bias_gelu(x, bias))
    got = torch.autograd.grad((fused(x, bias) * weight).sum(), (x, bias))
    exact = [t.detach().double().requires_grad_() for t in (x, bias)]
    expected = torch.autograd.grad((unfused_bias_gelu(*exact) * weight).sum(), exact)
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g, e.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Input #:UserWarning")
def test_004_gradcheck(built):
    fused = gelu_function(built("004"))
    x = randn(4, 8, dtype=torch.float64, requires_grad=True)
    bias = randn(8, dtype=torch.float64, requires_grad=True)
    # The document's own check, in float64, on kernels that read float32.
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        gradcheck(fused, (x, bias), eps=1e-6)
    x32, bias32 = (t.detach().float().requires_grad_() for t in (x, bias))
    assert gradcheck(fused, (x32, bias32), eps=1e-2, atol=1e-3, rtol=1e-2)


def test_004_torch_library(built):
    fused = gelu_function(built("004"))
    with torch.library._scoped_library("myops", "FRAGMENT") as library:
        torch.library.define("myops::fused_bias_gelu", "(Tensor input, Tensor bias) -> Tensor", lib=library)
        torch.library.impl("myops::fused_bias_gelu", kernel_xray.device.type, fused, lib=library)
        # repaired: impl_abstract is the old name of register_fake
        torch.library.register_fake("myops::fused_bias_gelu", lambda x, bias: torch.empty_like(x), lib=library)
        x, bias = randn(6, 10), randn(10)
        torch.testing.assert_close(torch.ops.myops.fused_bias_gelu(x, bias), unfused_bias_gelu(x, bias))
        torch.library.opcheck(
            torch.ops.myops.fused_bias_gelu.default, (x, bias), test_utils=("test_schema", "test_faketensor")
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_004_exercise_types(built, dtype):
    x, bias = randn(9, 50).to(dtype), randn(50).to(dtype)
    expected = unfused_bias_gelu(x.double(), bias.double()).to(dtype)
    torch.testing.assert_close(built("004").forward_typed(x, bias), expected)


def test_004_exercise_float4(built):
    x, bias = randn(9, 52), randn(52)
    torch.testing.assert_close(built("004").forward_float4(x, bias), unfused_bias_gelu(x, bias))
    with pytest.raises(RuntimeError, match="multiple of 4, got 50"):
        built("004").forward_float4(x[:, :50].contiguous(), bias[:50])
