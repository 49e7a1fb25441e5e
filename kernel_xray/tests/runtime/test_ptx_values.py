"""Inline PTX that computes: each instruction of cases/ptx_values.cu against a reference computed here.

A kernel's instructions and their order are read from its source, so that an instruction without a reference fails. On a
GPU the same kernels run on the hardware: the references are the PTX ISA's, not the simulator's.
"""

import math
import operator
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from simt_programs import CASES

import kernel_xray

FILES = ["ptx_values"]
SOURCE = (CASES / "ptx_values.cu").read_text()
NEAREST, ZERO, DOWN, UP = range(4)


def instructions(kernel):
    """The texts of the asm statements of a kernel that write a result, in order."""
    body = re.search(rf"__global__ void {kernel}\(.*?\n}}\n", SOURCE, re.DOTALL)[0]
    statements = re.findall(r"asm(?: volatile)?\((.*?)\);\n", body, re.DOTALL)
    return [
        " ".join(re.findall(r'"((?:[^"\\]|\\.)*?;[^"]*)"', s)) for s in statements if "d++" in s or "addc.u32 %2" in s
    ]


def run(built, kernel, *inputs):
    """The results as rows, one per thread; a column for each instruction."""
    count = len(instructions(kernel))
    out = np.zeros((len(inputs[0]), count), inputs[0].dtype)
    tensors = [torch.from_numpy(x.copy()).to(kernel_xray.device) for x in (*inputs, out)]
    getattr(built("ptx_values"), f"values_of_{kernel}")(tensors, [count])
    return tensors[-1].cpu().numpy()


# ----------------------------------------------------------------------------------------------------------------------
# Integers. References take and give Python's integers, which are cut to the width afterwards.


def signed(x, bits=32):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def on_signed(function, bits=32):
    return lambda *values: function(*(signed(v, bits) for v in values))


def clamp(x, low, high):
    return min(max(x, low), high)


def cut(quotient_or_rest):
    """Division that rounds toward zero."""

    def divide(x, y):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return quotient if quotient_or_rest == "div" else x - quotient * y

    return divide


def bit_field(x, position, length, bits, is_signed):
    """The loop of the PTX ISA."""
    position, length, most = position & 255, length & 255, bits - 1
    sign = 0 if not is_signed or length == 0 else x >> min(position + length - 1, most) & 1
    return sum((x >> (position + i) & 1 if i < length and position + i <= most else sign) << i for i in range(bits))


def inserted(a, b, position, length, bits):
    for i in range(min(length & 255, bits)):
        if (position & 255) + i < bits:
            at = (position & 255) + i
            b = b & ~(1 << at) | (a >> i & 1) << at
    return b


def leading_zeros(x, bits):
    return bits - x.bit_length()


def top_bit(x):
    return max(x if x >= 0 else ~x, 0).bit_length() - 1


def lanes(word, bits, is_signed=False):
    parts = [word >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [signed(p, bits) if is_signed else p for p in parts]


def packed(parts, bits):
    return sum((p & ((1 << bits) - 1)) << bits * i for i, p in enumerate(parts))


def permuted(a, b, selector):
    source = [*lanes(a, 8), *lanes(b, 8)]
    chosen = [(source[n & 7], n >> 3) for n in lanes(selector, 4)[:4]]
    return packed([255 * (byte >> 7) if sign else byte for byte, sign in chosen], 8)


def each(function, bits, is_signed=False):
    return lambda a, b, c: packed(map(function, lanes(a, bits, is_signed), lanes(b, bits, is_signed)), bits)


def dot(a, b, c):
    return c + sum(map(operator.mul, a, b))


def nth_set(mask, base, offset):
    offset = offset % 7 - 3
    step = -1 if offset < 0 else 1
    left = abs(offset) or 1
    for bit in range(base % 32, -1 if step < 0 else 32, step):
        left -= mask >> bit & 1
        if left == 0:
            return bit
        if offset == 0:
            break
    return -1


def reverse(x, bits):
    return int(f"{x:0{bits}b}"[::-1], 2)


def bounded(function):
    return on_signed(lambda a, b: clamp(function(a, b), -(2**31), 2**31 - 1))


def shift(c):
    return c % 40


WORDS = {
    "add.u32": lambda a, b, c: a + b,
    "add.sat.s32": lambda a, b, c: bounded(operator.add)(a, b),
    "sub.s32": lambda a, b, c: a - b,
    "sub.sat.s32": lambda a, b, c: bounded(operator.sub)(a, b),
    "mul.lo.u32": lambda a, b, c: a * b,
    "mul.hi.u32": lambda a, b, c: a * b >> 32,
    "mul.hi.s32": lambda a, b, c: signed(a) * signed(b) >> 32,
    "mad.lo.s32": lambda a, b, c: a * b + c,
    "mad.hi.u32": lambda a, b, c: (a * b >> 32) + c,
    "sad.s32": lambda a, b, c: abs(signed(a) - signed(b)) + c,
    "div.u32": lambda a, b, c: a // (c | 1),
    "div.s32": lambda a, b, c: cut("div")(signed(a), c >> 3 | 1),
    "rem.s32": lambda a, b, c: cut("rem")(signed(a), c >> 3 | 1),
    "abs.s32": lambda a, b, c: abs(signed(a)),
    "neg.s32": lambda a, b, c: -a,
    "min.s32": lambda a, b, c: min(signed(a), signed(b)),
    "max.u32": lambda a, b, c: max(a, b),
    "popc.b32": lambda a, b, c: a.bit_count(),
    "clz.b32": lambda a, b, c: leading_zeros(a, 32),
    "brev.b32": lambda a, b, c: reverse(a, 32),
    "bfind.u32": lambda a, b, c: top_bit(a),
    "bfind.s32": lambda a, b, c: top_bit(signed(a)),
    "bfind.shiftamt.u32": lambda a, b, c: 31 - top_bit(a) if a else -1,
    "bfe.u32": lambda a, b, c: bit_field(a, shift(c), b, 32, False),
    "bfe.s32": lambda a, b, c: bit_field(a, shift(c), b % 40, 32, True),
    "bfi.b32": lambda a, b, c: inserted(a, b, shift(c), c >> 8, 32),
    "and.b32": lambda a, b, c: a & b,
    "or.b32": lambda a, b, c: a | 0xF0,
    "xor.b32": lambda a, b, c: a ^ b,
    "not.b32": lambda a, b, c: ~a,
    "cnot.b32": lambda a, b, c: a % 3 == 0,
    "lop3.b32 0xe8": lambda a, b, c: a & b | a & c | b & c,
    "lop3.b32 0x96": lambda a, b, c: a ^ b ^ c,
    "shl.b32": lambda a, b, c: a << shift(c),
    "shr.u32": lambda a, b, c: a >> shift(c),
    "shr.s32": lambda a, b, c: signed(a) >> shift(c),
    "shf.l.wrap.b32": lambda a, b, c: (b << 32 | a) << shift(c) % 32 >> 32,
    "shf.r.wrap.b32": lambda a, b, c: (b << 32 | a) >> shift(c) % 32,
    "shf.l.clamp.b32": lambda a, b, c: (b << 32 | a) << min(shift(c), 32) >> 32,
    "shf.r.clamp.b32": lambda a, b, c: (b << 32 | a) >> min(shift(c), 32),
    "prmt.b32": permuted,
    "dp4a.s32.u32": lambda a, b, c: dot(lanes(a, 8, True), lanes(b, 8), c),
    "dp4a.u32.u32": lambda a, b, c: dot(lanes(a, 8), lanes(b, 8), c),
    "dp2a.hi.s32.s32": lambda a, b, c: dot(lanes(a, 16, True), lanes(b, 8, True)[2:], c),
    "vabsdiff4.u32.u32.u32.add": lambda a, b, c: c + sum(map(abs, map(operator.sub, lanes(a, 8), lanes(b, 8)))),
    "vabsdiff4.u32.u32.u32": each(lambda x, y: abs(x - y), 8),
    "vmax2.s32.s32.s32": each(max, 16, True),
    "vadd4.u32.u32.u32": each(operator.add, 8),
    "fns.b32": nth_set,
    "cvt.u32.u8": lambda a, b, c: a & 255,
    "cvt.s32.s16": lambda a, b, c: signed(a, 16),
    "cvt.sat.u8.s32": lambda a, b, c: clamp(a >> 3, 0, 255),
    "cvt.pack.sat.s8.s32.b32": lambda a, b, c: (
        c << 16 | (clamp(signed(a), -128, 127) & 255) << 8 | clamp(b % 200, -128, 127)
    ),
    "mov low high": lambda a, b, c: packed(lanes(a, 16)[::-1], 16),
    "mov bytes": lambda a, b, c: packed(lanes(a, 8)[::-1], 8),
    "setp.lt.s32": lambda a, b, c: 1 if signed(a) < signed(b) else 6,
    "setp.hi.u32": lambda a, b, c: c % 4 == 3 and not a > b,
    "set.ge.u32.s32": lambda a, b, c: -(signed(a) >= signed(b)),
    "slct.b32.s32": lambda a, b, c: a if signed(c) >= 0 else b,
    "loop": lambda a, b, c: a.bit_count(),
}

LONG_WORDS = {
    "add.u64": lambda a, b, c: a + b,
    "mul.lo.u64": lambda a, b, c: a * b,
    "mul.hi.u64": lambda a, b, c: a * b >> 64,
    "mul.hi.s64": lambda a, b, c: signed(a, 64) * signed(b, 64) >> 64,
    "mul.wide.u32": lambda a, b, c: a % 2**32 * (b % 2**32),
    "mul.wide.s32": lambda a, b, c: signed(a) * signed(b),
    "mad.wide.u32": lambda a, b, c: a % 2**32 * (b % 2**32) + c,
    "shl.b64": lambda a, b, c: a << c % 70,
    "shr.s64": lambda a, b, c: signed(a, 64) >> c % 70,
    "bfe.u64": lambda a, b, c: bit_field(a, c % 70, b % 2**32 % 70, 64, False),
    "bfi.b64": lambda a, b, c: inserted(a, b, c % 70, b % 2**32 % 70, 64),
    "popc.b64": lambda a, b, c: a.bit_count(),
    "clz.b64": lambda a, b, c: leading_zeros(a, 64),
    "brev.b64": lambda a, b, c: reverse(a, 64),
    "mov pack": lambda a, b, c: a % 2**32 << 32 | b % 2**32,
    "mov swap": lambda a, b, c: a >> 32 | a << 32,
    "cvt.s64.s32": lambda a, b, c: signed(a),
    "add immediate": lambda a, b, c: a + 0xFEDCBA9876543210,
    "three words": lambda a, b, c: _three_words(a % 2**32, b % 2**32, b >> 32),
    "add.cc": lambda a, b, c: a + b,
    "addc": lambda a, b, c: c + (a + b >> 64),
    "sub.cc": lambda a, b, c: a - b,
    "subc": lambda a, b, c: c - 1 - (a < b),
    "mad chain": lambda a, b, c: _product_chain(a, b, c),
}


def _three_words(a, low, high):
    low_sum = a + low
    middle = a + high + (low_sum >> 32)
    return low_sum % 2**32 + (middle % 2**32 << 32) + (middle >> 32)


def _product_chain(a, b, c):
    low = (a * b) % 2**64 + c
    high = (a * b >> 64) + c + (low >> 64)
    return low % 2**64 ^ high % 2**64


def words(bits):
    edges = [0, 1, 2, 3, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1, 2**bits - 2, 0x7F, 0x80, 0x8000]
    random = np.random.default_rng(bits)
    dtype = np.uint32 if bits == 32 else np.uint64
    drawn = random.integers(0, 2**bits, (3, 400), dtype=dtype) >> random.integers(0, bits, (3, 400), dtype=dtype)
    pairs = np.array([(x, y, z) for x in edges for y in edges for z in edges[1:6]], dtype)[:600].T
    return np.concatenate([drawn, pairs], axis=1)


@pytest.mark.parametrize(("kernel", "bits", "references"), [("words", 32, WORDS), ("long_words", 64, LONG_WORDS)])
def test_integers(built, kernel, bits, references):
    inputs = words(bits)
    assert len(instructions(kernel)) == len(references)
    results = run(built, kernel, *inputs)
    columns = [[int(x) for x in column] for column in inputs]
    for got, (name, reference) in zip(results.T, references.items(), strict=True):
        want = [int(reference(*values)) % 2**bits for values in zip(*columns, strict=True)]
        wrong = [i for i, (g, w) in enumerate(zip(got.tolist(), want, strict=True)) if g != w]
        assert not wrong, (name, [hex(column[wrong[0]]) for column in columns], hex(got[wrong[0]]), hex(want[wrong[0]]))
        assert len(set(want)) > 1, name


# ----------------------------------------------------------------------------------------------------------------------
# Floating point. References take and give arrays.

FORMATS = {"f16": (11, -24, 65504.0), "bf16": (8, -133, float.fromhex("0x1.fep127")), "tf32": (11, -136, math.inf)}
FORMATS |= {
    "f32": (24, -149, float.fromhex("0x1.fffffep127")),
    "f64": (53, -1074, float.fromhex("0x1.fffffffffffffp1023")),
}
AWAY = 4  # to nearest, ties away from zero


def rounded(x, mode, kind):
    """The Fraction x in a format, as a float."""
    digits, least, largest = FORMATS[kind]
    if x == 0:
        return 0.0
    exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    exponent += (abs(x) >= Fraction(2) ** (exponent + 1)) - (abs(x) < Fraction(2) ** exponent)
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    steps = x / unit
    down = math.floor(steps)
    if mode == NEAREST:
        whole = round(steps)
    elif mode == AWAY:
        whole = math.floor(abs(steps) + Fraction(1, 2)) * (1 if x > 0 else -1)
    else:
        whole = down if mode == DOWN or (mode == ZERO and x > 0) else math.ceil(steps)
    result = whole * unit
    if abs(result) <= Fraction(largest) if largest != math.inf else True:
        return float(result)
    inward = mode == ZERO or (mode == UP and x < 0) or (mode == DOWN and x > 0)
    return math.copysign(largest if inward else math.inf, x)


def exact(mode, function, kind="f32"):
    """A function of Fractions, rounded once; where an argument is not finite, or b is 0, that of floats."""

    def one(*values):
        if all(map(math.isfinite, values)) and not (function is operator.truediv and values[1] == 0):
            return rounded(function(*map(Fraction, values)), mode, kind)
        return float(function(*map(np.float64, values)))

    return lambda *arrays: np.array([one(*values) for values in zip(*map(np.ndarray.tolist, arrays), strict=True)])


def flushed(x):
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def whole(x, function, low, high):
    return np.clip(np.nan_to_num(function(x.astype(np.float64)), nan=0.0), low, high)


def unit(x):
    return np.clip(np.nan_to_num(x, nan=0.0), 0, 1)


def number(a, b, choose):
    """Of a number and NaN: the number."""
    return choose(np.where(np.isnan(a), b, a), np.where(np.isnan(b), a, b))


FLOATS = {
    "add.f32": lambda a, b, c: a + b,
    "add.rz.f32": lambda a, b, c: exact(ZERO, operator.add)(a, b),
    "sub.rm.f32": lambda a, b, c: exact(DOWN, operator.sub)(a, b),
    "mul.rp.f32": lambda a, b, c: exact(UP, operator.mul)(a, b),
    "mul.rn.ftz.f32": lambda a, b, c: flushed(flushed(a) * flushed(b)),
    "add.sat.f32": lambda a, b, c: unit(a + b),
    "fma.rn.f32": lambda a, b, c: exact(NEAREST, lambda x, y, z: x * y + z)(a, b, c),
    "fma.rz.f32": lambda a, b, c: exact(ZERO, lambda x, y, z: x * y + z)(a, b, c),
    "div.rn.f32": lambda a, b, c: a / b,
    "div.rm.f32": lambda a, b, c: exact(DOWN, operator.truediv)(a, b),
    "rcp.rn.f32": lambda a, b, c: np.float32(1) / a,
    "sqrt.rn.f32": lambda a, b, c: np.sqrt(a),
    "min.f32": lambda a, b, c: number(a, b, np.minimum),
    "max.NaN.f32": lambda a, b, c: np.maximum(a, b),
    "abs.f32": lambda a, b, c: np.abs(a),
    "neg.ftz.f32": lambda a, b, c: -flushed(a),
    "copysign.f32": lambda a, b, c: np.copysign(b, a),
    "add 1": lambda a, b, c: a + np.float32(1),
    "mul -2.5": lambda a, b, c: a * np.float32(-2.5),
    "cvt.rni.f32.f32": lambda a, b, c: np.rint(a),
    "cvt.rpi.f32.f32": lambda a, b, c: np.ceil(a),
    "cvt.sat.f32.f32": lambda a, b, c: unit(a),
    "cvt.rn.f16.f32": lambda a, b, c: a.astype(np.float16),
    "cvt.rz.f16.f32": lambda a, b, c: exact(ZERO, operator.pos, "f16")(a),
    "cvt.rn.bf16.f32": lambda a, b, c: exact(NEAREST, operator.pos, "bf16")(a),
    "cvt.rn.f32.f64": lambda a, b, c: (a.astype(np.float64) * (1 + 2.0**-24)).astype(np.float32),
    "cvt.rzi.s32.f32": lambda a, b, c: whole(a, np.trunc, -(2**31), 2**31 - 1).astype(np.float32),
    "cvt.rmi.u32.f32": lambda a, b, c: exact(ZERO, operator.pos)(whole(a, np.floor, 0, 2**32 - 1)),
    "cvt.rna.tf32.f32": lambda a, b, c: exact(AWAY, operator.pos, "tf32")(a).astype(np.float32),
    "setp.lt.f32": lambda a, b, c: a < b,
    "setp.geu.f32": lambda a, b, c: ~(a < b),
    "set.ne.f32.f32": lambda a, b, c: (a != b) & ~np.isnan(a) & ~np.isnan(b),
    "testp.subnormal.f32": lambda a, b, c: (a != 0) & (np.abs(a) < 2.0**-126),
}

DOUBLES = {
    "add.rn.f64": lambda a, b, c: a + b,
    "mul.rz.f64": lambda a, b, c: exact(ZERO, operator.mul, "f64")(a, b),
    "fma.rn.f64": lambda a, b, c: exact(NEAREST, lambda x, y, z: x * y + z, "f64")(a, b, c),
    "div.rn.f64": lambda a, b, c: a / b,
    "sqrt.rn.f64": lambda a, b, c: np.sqrt(a),
    "max.f64": lambda a, b, c: number(a, b, np.maximum),
    "cvt.rzi.s64.f64": lambda a, b, c: np.trunc(np.where(np.isnan(a), -(2.0**63), np.clip(a, -(2.0**63), 2.0**63))),
    "mov": lambda a, b, c: a,
}


def reals(dtype):
    random = np.random.default_rng(7)
    wide = random.standard_normal((3, 500)) * 2.0 ** random.integers(-30, 31, (3, 500))
    near = random.integers(-40, 40, (3, 200)) / 16  # ties
    special = [0.0, -0.0, 1.0, -1.0, 1e-40, -3e-39, 3e38, -3e38, 65520.0, 6e-8, math.inf, -math.inf, math.nan]
    pairs = np.array([(x, y, special[(i + j) % 9]) for i, x in enumerate(special) for j, y in enumerate(special)]).T
    return np.concatenate([wide, near, pairs], axis=1).astype(dtype)


def same(got, want):
    return (got == want) | (np.isnan(got) & np.isnan(want))


@pytest.mark.parametrize(
    ("kernel", "dtype", "references"), [("floats", np.float32, FLOATS), ("doubles", np.float64, DOUBLES)]
)
def test_floating_point(built, kernel, dtype, references):
    a, b, c = reals(dtype)
    assert len(instructions(kernel)) == len(references)
    results = run(built, kernel, a, b, c)
    for got, (name, reference) in zip(results.T, references.items(), strict=True):
        with np.errstate(all="ignore"):
            want = np.asarray(reference(a, b, c)).astype(dtype)
        wrong = np.flatnonzero(~same(got, want))
        assert not wrong.size, (name, a[wrong[0]], b[wrong[0]], c[wrong[0]], got[wrong[0]], want[wrong[0]])
        assert np.unique(want).size > 1, name


@pytest.mark.skipif(
    kernel_xray.target == "gpu" and torch.cuda.get_device_capability() < (10, 0), reason="needs compute capability 10.0"
)
def test_pairs_of_floats(built):
    a, b, c = (np.ascontiguousarray(x[:868].reshape(-1, 2)) for x in reals(np.float32))
    words = [np.ascontiguousarray(x).view(np.uint64).ravel() for x in (a, b, c)]
    results = run(built, "float_pairs", *words)
    flat = [x.ravel() for x in (a, b, c)]
    for got, name in zip(results.T, ["add.rz.f32", "mul.rn.ftz.f32", "fma.rn.f32"], strict=True):
        with np.errstate(all="ignore"):
            want = np.asarray(FLOATS[name](*flat)).astype(np.float32)
        assert same(np.ascontiguousarray(got).view(np.float32), want).all(), name


def test_minimum_of_zeros_and_signs(built):
    zeros = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    results = run(built, "floats", zeros, zeros[[0, 0, 1, 1]], zeros)
    names = list(FLOATS)
    assert np.signbit(results[:, names.index("min.f32")]).tolist() == [False, True, True, True]
    assert np.signbit(results[:, names.index("max.NaN.f32")]).tolist() == [False, False, False, True]
    assert np.signbit(results[:, names.index("copysign.f32")]).tolist() == np.signbit(zeros).tolist()


# The largest errors that the PTX ISA allows: relative, absolute.
APPROXIMATIONS = {
    "ex2": (2.0**-22, 0, lambda a, b: np.exp2(a)),
    "lg2": (2.0**-22, 2.0**-22, lambda a, b: np.log2(b)),
    "rcp": (2.0**-22, 0, lambda a, b: 1 / b),
    "rsqrt": (2.0**-22, 0, lambda a, b: 1 / np.sqrt(b)),
    "sqrt": (2.0**-22, 0, lambda a, b: np.sqrt(b)),
    "sin": (0, 2.0**-20.5, lambda a, b: np.sin(a)),
    "cos": (0, 2.0**-20.5, lambda a, b: np.cos(a)),
    "tanh": (2.0**-10, 0, lambda a, b: np.tanh(a)),
    "div.approx": (2.0**-21, 0, lambda a, b: a / b),
    "div.full": (2.0**-21, 0, lambda a, b: a / b),
}


def test_approximations(built):
    random = np.random.default_rng(3)
    a, b = random.uniform(-3.1, 3.1, 1000).astype(np.float32), random.uniform(0.01, 100, 1000).astype(np.float32)
    results = run(built, "approximations", a, b)
    wide = a.astype(np.float64), b.astype(np.float64)
    for i, (got, (name, (relative, absolute, reference))) in enumerate(
        zip(results.T, APPROXIMATIONS.items(), strict=True)
    ):
        np.testing.assert_allclose(got, reference(*wide), relative, absolute, err_msg=name)
        others = [j for j in range(len(APPROXIMATIONS)) if {i, j} != {8, 9} and i != j]
        assert not any(np.allclose(results[:, j], got, relative, absolute) for j in others), name


# ----------------------------------------------------------------------------------------------------------------------
# 16-bit numbers, two in a word


def as_f16(word):
    return word.view(np.float16).astype(np.float64).reshape(-1, 2)


def as_bf16(word):
    with np.errstate(invalid="ignore"):  # signalling NaN
        return (word.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(-1, 2)


def as_number(word):
    return low_word(word.astype(np.float64))


def on_pairs(function, decode, kind):
    return lambda *words: (decode, exact(NEAREST, function, kind)(*(decode(w).ravel() for w in words)).reshape(-1, 2))


def chosen(function, decode):
    return lambda *words: (decode, function(*(decode(w) for w in words)))


def low_word(values):
    return np.stack([values, np.zeros_like(values)], 1)


def fused(x, y, z):
    return x * y + z


def floats_to(decode, kind, relu=False):
    def convert(a, b, c):
        parts = [exact(NEAREST, operator.pos, kind)(word.view(np.float32)) for word in (b, a)]
        if relu:
            parts = [np.where(np.isnan(p), p, np.maximum(p, 0)) for p in parts]
        return decode, np.stack(parts, 1)

    return convert


def with_relu(reference):
    def apply(*words):
        decode, values = reference(*words)
        return decode, np.where(np.isnan(values), values, np.maximum(values, 0))

    return apply


HALVES = {
    "add.f16x2": lambda a, b, c: on_pairs(operator.add, as_f16, "f16")(a, b),
    "sub.rn.f16x2": lambda a, b, c: on_pairs(operator.sub, as_f16, "f16")(a, b),
    "mul.f16x2": lambda a, b, c: on_pairs(operator.mul, as_f16, "f16")(a, b),
    "fma.rn.f16x2": on_pairs(fused, as_f16, "f16"),
    "fma.rn.relu.f16x2": with_relu(on_pairs(fused, as_f16, "f16")),
    "max.f16x2": lambda a, b, c: chosen(lambda x, y: number(x, y, np.maximum), as_f16)(a, b),
    "min.NaN.f16x2": lambda a, b, c: chosen(np.minimum, as_f16)(a, b),
    "neg.f16x2": lambda a, b, c: chosen(np.negative, as_f16)(a),
    "fma.rn.bf16x2": on_pairs(fused, as_bf16, "bf16"),
    "max.bf16x2": lambda a, b, c: chosen(lambda x, y: number(x, y, np.maximum), as_bf16)(a, b),
    "add.f16": lambda a, b, c: (
        as_f16, low_word(exact(NEAREST, operator.add, "f16")(as_f16(a)[:, 0], as_f16(b)[:, 0])),
    ),
    "setp.gt.f16": lambda a, b, c: (as_number, low_word((as_f16(a)[:, 0] > as_f16(b)[:, 0]).astype(np.float64))),
    "cvt.rn.f16x2.f32": floats_to(as_f16, "f16"),
    "cvt.rn.relu.bf16x2.f32": floats_to(as_bf16, "bf16", relu=True),
}  # fmt: skip


def test_pairs_of_16_bits(built):
    random = np.random.default_rng(11)
    words = random.integers(0, 2**32, (3, 700), dtype=np.uint32)
    words[:, :300] = random.integers(0x3800, 0x4400, (3, 600), dtype=np.uint16).view(np.uint32)  # moderate numbers
    words[:, 300:340] = (
        random.choice([0, 0x8000, 0x7C00, 0xFC00, 0x7F80, 0x7FFF, 1, 0x3C00], (3, 80)).astype(np.uint16).view(np.uint32)
    )
    assert len(instructions("halves")) == len(HALVES)
    results = run(built, "halves", *words)
    for got, (name, reference) in zip(results.T, HALVES.items(), strict=True):
        with np.errstate(all="ignore"):
            decode, want = reference(*words)
            values = decode(np.ascontiguousarray(got))
        wrong = np.argwhere(~same(values, want))
        assert not wrong.size, (name, [hex(w[wrong[0][0]]) for w in words], values[wrong[0][0]], want[wrong[0][0]])
        assert np.unique(want).size > 1, name
