"""Special registers, collectives and matrix instructions of inline PTX (cases/ptx_warp.cu), on either target.

Products of small whole numbers are exact in every format, so they show where each lane's elements belong. Sums of wide
numbers are compared with the model of Hopper's tensor cores bit by bit.
"""

from fractions import Fraction
from functools import reduce
from operator import xor

import numpy as np
import pytest
import simt_programs
import torch
from simt_programs import load_case, operators
from test_simt_tensor_core import model

import kernel_xray

HOPPER = kernel_xray.target == "simulator" or torch.cuda.get_device_capability() == (9, 0)
LANES = range(32)

ops = operators(load_case, "ptx_warp", ["-arch=native"])


def run(ops, case, *arrays, numbers=()):
    return simt_programs.run(getattr(ops, case), map(torch.tensor, arrays), numbers)[-1].numpy()


def test_special_registers(ops):
    rows = []
    for block in range(3):
        for y in range(4):
            for x in range(16):
                lane = (x + 16 * y) % 32
                below = (1 << lane) - 1
                masks = [below, 2 * below + 1, 1 << lane, 2**32 - 1 - below, 2**32 - 2 - 2 * below]
                rows.append([x, y, 16, block, 3, lane, *masks, x + 32, 1, 1, 96])
    assert run(ops, "special", np.zeros((192, 15), np.uint32)).tolist() == rows


def test_collectives(ops):
    def value(i):
        return 3 * i + 1

    def of(i):
        lane, first = i % 32, i - i % 32
        up = value(i - 3) if lane >= 3 else 1000
        down = value(i + 2) if lane % 8 < 6 else value(i) + 1000
        row = [value(first + (lane + 5) % 32), up, down, value(i ^ 16), i ^ 1, 0x7F * (i < 32)]
        row += [i < 32, i >= 32, i >= 32, sum(value(first + k) for k in LANES), (first - 9) % 2**32]
        row += [reduce(xor, (value(first + k) for k in LANES))]
        row += [sum(1 << k for k in LANES if (first + k) // 5 == i // 5), 2**32 - 1, 2**32 - 1, 33, 1]
        return list(map(int, row))

    assert run(ops, "collectives", np.zeros((64, 17), np.uint32)).tolist() == [of(i) for i in range(64)]


def test_threads_that_exit_early(ops):
    assert run(ops, "exits", np.zeros(80, np.int32)).tolist() == [40, -1] * 40


def test_barriers_of_parts_of_a_block(ops):
    def of(i):
        j = i - i % 128 + 127 - i % 128
        return j - j % 32 + 31 - j % 32

    assert run(ops, "parts", np.zeros(256, np.int32)).tolist() == [of(i) for i in range(256)]


@pytest.mark.skipif(kernel_xray.target != "simulator", reason="redux.sync of floats needs compute capability 10.0")
def test_reductions_of_floats(ops):
    values = np.random.default_rng(0).standard_normal(32).astype(np.float32)
    cases = [values, abs(values), -abs(values), np.zeros(32, np.float32), np.full(32, np.nan, np.float32)]
    cases += [np.where(np.arange(32) % 5 == 3, np.float32(x), values) for x in (np.nan, np.inf, -np.inf)]
    cases += [np.where(np.arange(32) == 7, np.float32(-0.0), np.float32(0.0))]
    for given in cases:
        got = run(ops, "float_reductions", given, np.zeros((6, 32), np.float32))
        size = abs(given)
        want = [np.fmin.reduce(given), np.fmax.reduce(given), np.fmin.reduce(size), np.fmax.reduce(size)]
        want = np.float32([*want, given.min(), size.max()])
        if given is cases[-1]:
            want[0] = want[4] = -0.0  # which is less than +0
        assert np.array_equal(got, np.repeat(want[:, None], 32, 1), equal_nan=True)
        assert (np.signbit(got) == np.signbit(want)[:, None])[~np.isnan(got)].all()


# ----------------------------------------------------------------------------------------------------------------------
# Matrices of 8 x 8


def fragments(matrix):
    """The words that the lanes hold of an 8 x 8 matrix of uint16."""
    return np.ascontiguousarray(matrix).view(np.uint32).ravel()


def test_ldmatrix(ops):
    rows = np.arange(256, dtype=np.uint16).reshape(32, 8) * 251
    out = run(ops, "ldmatrix", rows, np.zeros((14, 32), np.uint32))
    matrices = rows.reshape(4, 8, 8)
    straight, turned = [fragments(m) for m in matrices], [fragments(m.T) for m in matrices]
    wanted = [*straight, *turned, *straight[:2], *turned[:2], straight[0], turned[0]]
    assert (out == np.stack(wanted)).all()
    assert (straight[0] != turned[0]).any()


@pytest.mark.skipif(not HOPPER, reason="stmatrix needs compute capability 9.0")
def test_stmatrix(ops):
    matrices = np.arange(256, dtype=np.uint16).reshape(4, 8, 8) * 251
    out = run(ops, "stmatrix", np.stack([fragments(m) for m in matrices]), np.zeros((64, 8), np.uint16))
    assert (out[:32].reshape(4, 8, 8) == matrices).all()
    assert (out[32:48].reshape(2, 8, 8) == matrices[:2].transpose(0, 2, 1)).all()
    assert (out[48:] == 0).all()


# ----------------------------------------------------------------------------------------------------------------------
# Products. As registers of the lanes, in the order of the PTX ISA: registers x 32 words.

# name: the number in ptx_warp.cu, rows, depth, and the formats of a, b and c
PRODUCTS = {
    "f16": (0, 16, 16, "f16", "f16", "f32"), "bf16": (1, 16, 16, "bf16", "bf16", "f32"),
    "f16 to f16": (2, 16, 16, "f16", "f16", "f16"), "f16, depth 8": (3, 16, 8, "f16", "f16", "f32"),
    "bf16, depth 8": (4, 16, 8, "bf16", "bf16", "f32"), "tf32": (5, 16, 8, "tf32", "tf32", "f32"),
    "tf32, depth 4": (6, 16, 4, "tf32", "tf32", "f32"), "s8": (7, 16, 32, "s8", "s8", "s32"),
    "u8 and s8": (8, 16, 16, "u8", "s8", "s32"), "s8, 8 rows": (9, 8, 16, "s8", "s8", "s32"),
    "s8, c of 0": (10, 8, 16, "s8", "s8", "s32"), "f16, c of 0": (11, 16, 8, "f16", "f16", "f32"),
    "e4m3": (12, 16, 32, "e4m3", "e4m3", "f32"), "e5m2 and e4m3": (13, 16, 16, "e5m2", "e4m3", "f32"),
    "e5m2 to f16": (14, 16, 32, "e5m2", "e5m2", "f16"), "s4": (15, 16, 64, "s4", "s4", "s32"),
    "u4 and s4": (16, 16, 32, "u4", "s4", "s32"), "s4 and u4, 8 rows": (17, 8, 32, "s4", "u4", "s32"),
    "f64, 8 rows": (21, 8, 4, "f64", "f64", "f64"), "f64": (22, 16, 8, "f64", "f64", "f64"),
}  # fmt: skip
BITS = {"xor": (18, 16, 256), "and": (19, 16, 128), "xor, 8 rows": (20, 8, 128)}
PRODUCTS |= {name: (*numbers, "b1", "b1", "s32") for name, numbers in BITS.items()}
EIGHT = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
FEW = {"s4": 4, "u4": 4, "b1": 1}  # bits of an element
TYPES = {"f64": np.float64, "f16": np.float16, "tf32": np.float32, "f32": np.float32}
TYPES |= {"s8": np.int8, "u8": np.uint8, "s32": np.int32}


def encode(values, kind):
    """Numbers as the bytes of a format."""
    if kind == "bf16":
        return torch.from_numpy(np.asarray(values, np.float32)).bfloat16().view(torch.int16).numpy()
    if kind in EIGHT:
        return torch.from_numpy(np.asarray(values, np.float32)).to(EIGHT[kind]).view(torch.uint8).numpy()
    if kind in FEW:  # several in a word
        bits = FEW[kind]
        codes = (np.asarray(values) & (1 << bits) - 1).reshape(len(values), -1, 32 // bits)
        return (codes << np.arange(0, 32, bits)).sum(-1).astype(np.uint32)
    return np.asarray(values).astype(TYPES[kind])


def registers_of_factor(lines, kind):
    """lines: rows of a or columns of b, each with the elements along k."""
    lines = encode(lines, kind)
    pack = max(4 // lines.itemsize, 1)
    parts = lines.reshape(-1, 8, lines.shape[1] // (4 * pack), 4, pack)  # eights of lines, line, part of k, lane % 4
    words = np.ascontiguousarray(parts).view(np.uint32)  # one for each, or two
    return np.ascontiguousarray(words.transpose(2, 0, 4, 1, 3)).reshape(-1, 32)  # parts of k, eights, words, lane


def registers_of_sum(matrix, kind):
    """c or d, of 8 or 16 rows and 8 columns."""
    pairs = encode(matrix, kind).reshape(-1, 8, 4, 2)  # eights of rows, row, lane % 4, column
    if kind == "f16":
        return np.ascontiguousarray(pairs).view(np.uint32).reshape(-1, 32)
    words = np.ascontiguousarray(pairs[..., None]).view(np.uint32)
    return np.ascontiguousarray(words.transpose(0, 3, 4, 1, 2)).reshape(-1, 32)


def sum_of_registers(registers, kind):
    if kind == "f16":
        return registers.view(np.float16).reshape(-1, 8)
    words = registers.reshape(-1, 2, np.dtype(TYPES[kind]).itemsize // 4, 8, 4).transpose(0, 3, 4, 1, 2)
    return np.ascontiguousarray(words).view(TYPES[kind]).reshape(-1, 8)


def product(ops, name, a, b, c):
    """a * b + c: a of rows x depth, b of depth x 8."""
    number, _, _, kind_a, kind_b, kind_c = PRODUCTS[name]
    words = registers_of_factor(a, kind_a), registers_of_factor(b.T, kind_b), registers_of_sum(c, kind_c)
    out = run(ops, "mma", *words, np.zeros_like(words[2]), numbers=[number])
    return sum_of_registers(out, kind_c)


@pytest.mark.parametrize("name", [name for name in PRODUCTS if name not in BITS])
def test_products_of_whole_numbers(ops, name):
    _, rows, depth, kind_a, kind_b, _ = PRODUCTS[name]
    random = np.random.default_rng(rows + depth)
    low_a, low_b = (0 if kind[0] == "u" else -7 for kind in (kind_a, kind_b))
    a, b = random.integers(low_a, 8, (rows, depth)), random.integers(low_b, 8, (depth, 8))
    c = random.integers(-50, 50, (rows, 8))
    assert (product(ops, name, a, b, c) == a @ b + c).all()
    assert not (product(ops, name, a, b[::-1], c) == a @ b + c).all()


@pytest.mark.parametrize("name", BITS)
def test_products_of_bits(ops, name):
    _, rows, depth = BITS[name]
    random = np.random.default_rng(depth)
    a, b, c = random.integers(0, 2, (rows, depth)), random.integers(0, 2, (depth, 8)), random.integers(-9, 9, (rows, 8))
    want = c + ((a[:, :, None] ^ b if "xor" in name else a[:, :, None] & b).sum(1))
    assert (product(ops, name, a, b, c) == want).all()
    assert not (product(ops, name, a, b[::-1], c) == want).all()


def test_integers_of_4_bits_have_signs(ops):
    for name, most in (("s4", 64 * 8 * 8), ("u4 and s4", -32 * 8 * 8), ("s4 and u4, 8 rows", -32 * 8 * 8)):
        _, rows, depth, kind_a, kind_b, _ = PRODUCTS[name]
        a = np.full((rows, depth), 8 if kind_a == "u4" else -8)
        b = np.full((depth, 8), 8 if kind_b == "u4" else -8)
        assert (product(ops, name, a, b, np.zeros((rows, 8))) == most).all()


def test_sums_of_float64_are_fused_multiply_adds_along_k(ops):
    random = np.random.default_rng(1)
    a, b, c = (random.standard_normal(shape) for shape in ((16, 8), (8, 8), (16, 8)))

    def exact(i, j):  # each step rounded once, by fractions
        return reduce(lambda x, k: float(Fraction(x) + Fraction(a[i, k]) * Fraction(b[k, j])), range(8), c[i, j])

    want = [[exact(i, j) for j in range(8)] for i in range(16)]
    assert product(ops, "f64", a, b, c).tolist() == want
    assert (np.array(want) != a @ b + c).any()


@pytest.mark.skipif(not HOPPER, reason="the model is Hopper's")
def test_sums_of_8_bit_floats_are_two_of_halves(ops):
    a, b = (as_numbers(wide(shape, 6, i), "e4m3") for i, shape in enumerate([(16, 32), (32, 8)]))
    c = wide((16, 8), 3, 2).astype(np.float32)
    first = np.arange(32) % 4 < 2  # the lower half of each register

    def of(x, y, addend):
        lower = model(x[first], y[first], 0.0, torch.float16)
        return np.float32(addend) + np.float32(model(x[~first], y[~first], lower, torch.float16))

    want = [[of(a[i], b[:, j], c[i, j]) for j in range(8)] for i in range(16)]
    assert (product(ops, "e4m3", a, b, c) == np.array(want)).all()
    assert (product(ops, "e4m3", a, b, c) != (a @ b + c).astype(np.float32)).any()


def test_integer_sums_wrap_or_saturate(ops):
    most = 2**31 - 1
    for name, want in (("s8", -(2**31) + 127 * 32 - 1), ("u8 and s8", most)):
        _, rows, depth, *_ = PRODUCTS[name]
        a, b, c = np.full((rows, depth), 127), np.full((depth, 8), 1), np.full((rows, 8), most)
        assert (product(ops, name, a, b, c) == want).all(), name


def wide(shape, spread, seed):
    random = np.random.default_rng(seed)
    return random.standard_normal(shape) * 2.0 ** random.integers(-spread, spread + 1, shape)


FORMATS = {"f16": torch.float16, "bf16": torch.bfloat16, "tf32": "tf32", **EIGHT}


def as_numbers(x, kind):
    """x in a format, as float64."""
    if kind == "tf32":
        bits = x.astype(np.float32).view(np.uint32)
        return (bits & ~np.uint32(0x1FFF)).view(np.float32).astype(np.float64)
    return torch.from_numpy(x).to(FORMATS[kind]).double().numpy()


@pytest.mark.skipif(not HOPPER, reason="the model is Hopper's")
@pytest.mark.parametrize("name", ["f16", "bf16", "f16, depth 8", "bf16, depth 8", "tf32", "tf32, depth 4"])
@pytest.mark.parametrize("spread", [0, 6])
def test_sums_are_those_of_the_model_bit_by_bit(ops, name, spread):
    _, rows, depth, kind, *_ = PRODUCTS[name]
    a, b = (as_numbers(wide(shape, spread, i), kind) for i, shape in enumerate([(rows, depth), (depth, 8)]))
    c = wide((rows, 8), spread, 2).astype(np.float32)
    got = product(ops, name, a, b, c)
    want = [[model(a[i], b[:, j], c[i, j].item(), FORMATS[kind]) for j in range(8)] for i in range(rows)]
    assert got.tolist() == want
    assert (got != (a @ b + c).astype(np.float32)).any()


def test_tf32_ignores_the_last_bits(ops):
    a, b = wide((16, 8), 2, 3).astype(np.float32), wide((8, 8), 2, 4).astype(np.float32)
    cut = [as_numbers(x, "tf32") for x in (a, b)]
    zero = np.zeros((16, 8))
    assert (product(ops, "tf32", a, b, zero) == product(ops, "tf32", *cut, zero)).all()
    assert (a != cut[0]).any()
