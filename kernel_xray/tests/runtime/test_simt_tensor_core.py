"""The simulated tensor core: its sums bit by bit against a model in exact fractions, and wmma's shapes and layouts.

The model is Hopper's: exact products, aligned to the largest exponent, truncated after 25 fractional bits, added
exactly, rounded toward zero to float32 or to nearest, even, to float16. On a GPU of compute capability 9.0 the same
cases check the hardware against the model.
"""

import math
import struct
from fractions import Fraction

import pytest
import torch
from simt_programs import CASES, load_cases, operators

import kernel_xray

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        kernel_xray.target == "gpu" and torch.cuda.get_device_capability() != (9, 0), reason="the model is Hopper's"
    ),
]
SHAPES = ((16, 16), (32, 8), (8, 32))
HALF, BFLOAT = torch.float16, torch.bfloat16
INTEGERS = (torch.int8, torch.uint8)
TYPES = ((BFLOAT, torch.float32), (HALF, torch.float32), (HALF, HALF), *((dtype, torch.int32) for dtype in INTEGERS))
FORMAT = {HALF: (10, 15), BFLOAT: (7, 127), "tf32": (10, 127)}  # fraction bits, bias
ops = operators(load_cases, CASES / "tensor_core.cu", "simt_case_tensor_core", ["-arch=native"])


@pytest.fixture(scope="module")
def product(ops):
    def call(a, b, c, row_a=True, row_b=True):
        types = TYPES.index((a.dtype, c.dtype))
        a, b = (x if row else x.t().contiguous() for x, row in ((a, row_a), (b, row_b)))
        tensors = [x.to(kernel_xray.device) for x in (a, b, c, torch.empty_like(c))]
        ops.product(tensors, [SHAPES.index(c.shape), types, row_a, row_b])
        return tensors[-1].cpu()

    return call


def exponent_of(x, dtype):
    """The exponent of a finite number in its format; subnormals have the smallest normal number's."""
    least = 1 - FORMAT[dtype][1] if dtype in FORMAT else -126
    return max(math.frexp(x)[1] - 1, least)


def model(a, b, c, dtype, bits=25):
    """One sum of products of numbers of `dtype`, plus c, in exact fractions. Finite numbers only."""
    terms = [
        (Fraction(x) * Fraction(y), exponent_of(x, dtype) + exponent_of(y, dtype)) for x, y in zip(a, b, strict=True)
    ]
    terms = [term for term in [*terms, (Fraction(c), exponent_of(c, torch.float32))] if term[0]]
    if not terms:
        return 0.0
    unit = Fraction(2) ** (max(exponent for _, exponent in terms) - bits)
    total = sum(int(term / unit) for term, _ in terms) * unit  # int truncates
    if not total:
        return 0.0
    unit = Fraction(2) ** max(math.frexp(abs(float(total)))[1] - 24, -149)
    return float(int(total / unit) * unit)


def bits_of(x):
    return struct.pack("<f", x)


def wide(shape, dtype, spread):
    """Random numbers over many binades, so that terms are truncated."""
    return (torch.randn(shape) * 2.0 ** torch.randint(-spread, spread + 1, shape)).to(dtype)


@pytest.mark.parametrize("dtype", [HALF, BFLOAT])
@pytest.mark.parametrize("spread", [0, 3, 7, 14])
def test_sums_are_those_of_the_model_bit_by_bit(product, dtype, spread):
    torch.manual_seed(spread)
    for _ in range(3):
        a, b, c = wide((16, 16), dtype, spread), wide((16, 16), dtype, spread), wide((16, 16), torch.float32, spread)
        got = product(a, b, c)
        for i in range(16):
            for j in range(16):
                wanted = model(a[i].tolist(), b[:, j].tolist(), c[i, j].item(), dtype)
                assert bits_of(got[i, j].item()) == bits_of(wanted)


def test_the_model_is_neither_float32_nor_one_with_fewer_bits():
    torch.manual_seed(0)
    a, b, c = wide((64, 16), HALF, 7), wide((64, 16), HALF, 7), wide((64,), torch.float32, 7)
    rows = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    ours = [model(x, y, z, HALF) for x, y, z in rows]
    assert sum(p != model(*row, HALF, bits=24) for p, row in zip(ours, rows, strict=True)) > 3
    exact = [
        float(sum(Fraction(x) * Fraction(y) for x, y in zip(*row[:2], strict=True)) + Fraction(row[2])) for row in rows
    ]
    assert sum(p != torch.tensor(q, dtype=torch.float32).item() for p, q in zip(ours, exact, strict=True)) > 10


def one(product, a, b, c=0.0, dtype=HALF):
    """The sum for one row and one column, the rest being zero."""
    x, y, z = torch.zeros(16, 16, dtype=dtype), torch.zeros(16, 16, dtype=dtype), torch.zeros(16, 16)
    x[0, : len(a)], y[: len(b), 0], z[0, 0] = torch.tensor(a).to(dtype), torch.tensor(b).to(dtype), c
    return product(x, y, z)[0, 0].item()


def test_what_a_float32_sum_would_not_give(product):
    tiny = 2.0**-13
    assert one(product, [1.0], [1.0], -1.0) == 0
    assert one(product, [1.0] + [tiny] * 15, [1.0] + [tiny] * 15) == 1  # 15 * 2^-26: each is truncated
    assert one(product, [1.0] + [tiny] * 15, [1.0] + [2 * tiny] * 15) == 1 + 14 * 2.0**-25 // 2**-23 * 2**-23
    assert one(product, [2.0**-24], [1.0]) == 2.0**-24  # a subnormal half
    assert one(product, [-(1 + 2.0**-10)], [1 + 2.0**-10], 2.0**-24) == -(1 + 2.0**-9 + 2.0**-20 - 2.0**-23)  # to zero


def test_nan_and_infinity(product):
    inf, nan = math.inf, math.nan
    assert one(product, [inf], [1.0]) == inf and one(product, [1.0], [-inf], 5.0) == -inf
    assert math.isnan(one(product, [inf], [0.0])) and math.isnan(one(product, [nan], [0.0]))
    assert math.isnan(one(product, [inf, inf], [1.0, -1.0])) and math.isnan(one(product, [1.0], [1.0], nan))
    assert one(product, [3e38], [3e38], dtype=BFLOAT) == inf


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [HALF, BFLOAT])
def test_shapes_and_layouts(product, shape, dtype):
    m, n = shape
    a, b, c = torch.randn(m, 16).to(dtype), torch.randn(16, n).to(dtype), torch.randn(m, n)
    exact = a.double() @ b.double() + c.double()
    for row_a in (True, False):
        for row_b in (True, False):
            torch.testing.assert_close(product(a, b, c, row_a, row_b).double(), exact, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(product(a.flip(1), b, c).double(), exact, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_of_integers_are_exact(product, shape, dtype):
    m, n = shape
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max + 1
    a, b = (torch.randint(least, most, size, dtype=dtype) for size in ((m, 16), (16, n)))
    c = torch.randint(-(2**30), 2**30, (m, n), dtype=torch.int32)
    exact = a.long() @ b.long() + c
    for row_a in (True, False) if m > 8 else (True,):  # lines of 8 are less than 16 bytes
        for row_b in (True, False) if n > 8 else (False,):
            assert torch.equal(product(a, b, c, row_a, row_b).long(), exact)
    row_b = n > 8
    assert not torch.equal(product(a.flip(1), b, c, True, row_b).long(), exact)
    wrapped = product(torch.full_like(a, 1), torch.full_like(b, 1), torch.full_like(c, 2**31 - 1), True, row_b)
    assert (wrapped == -(2**31) + 15).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_in_half_are_rounded_to_nearest_once(product, shape):
    m, n = shape
    a, b, c = torch.randn(m, 16).half(), torch.randn(16, n).half(), torch.randn(m, n).half()
    exact = a.double() @ b.double() + c.double()
    assert ((product(a, b, c).double() - exact).abs() <= exact.abs() * 2**-11 + 2**-20).all()
    ones = torch.ones(m, 16).half()
    assert (product(ones, torch.ones(16, n).half(), torch.full((m, n), 2048.0).half()) == 2064).all()


@pytest.mark.skipif(kernel_xray.target != "simulator", reason="a GPU's fault would end the process")
def test_a_misaligned_load_is_refused(product):
    flat = torch.zeros(16 * 16 + 1, dtype=HALF)
    with pytest.raises(kernel_xray.KernelFault, match="multiple of 32 bytes"):
        product(flat[1:].view(16, 16), torch.zeros(16, 16, dtype=HALF), torch.zeros(16, 16))


@pytest.mark.skipif(kernel_xray.target != "simulator", reason="a GPU multiplies single bits")
def test_single_bits_are_refused_where_they_are_multiplied(ops):
    ops.bits([], [64])
    with pytest.raises(kernel_xray.KernelFault, match="wmma of single bits"):
        ops.bits([], [32])
