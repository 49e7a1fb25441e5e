"""The 16-bit types against references that are computed from the definition of rounding, on all values or many pairs.

narrow_probe.cpp has them as plain functions over arrays. agreement.cu compares the same functions with a GPU's.
"""

import ctypes
import subprocess
from bisect import bisect_right
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from simt_programs import COMPILERS
from test_simt_headers import HERE, STRICT

from kernel_xray.runtime import libsimt

pytestmark = pytest.mark.slow  # all values of the 16-bit types; lesson 05 and the contract compute with them

HALF, BFLOAT16 = "half", "bfloat16"
NEAREST, ZERO, UP, DOWN = range(4)
OPTIMISED = ["-O2", "-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math"]  # as kernels are compiled
WAYS = [OPTIMISED, pytest.param(["-O3", "-march=native"], marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=WAYS, ids=["as kernels", "native"])
def probe(request, tmp_path_factory):
    """narrow_probe.cpp as a function: probe(name, output dtype, arrays..., integers...) -> output array."""
    path = tmp_path_factory.mktemp("probe") / "p.so"
    command = [COMPILERS[0], "-std=c++17", *STRICT, *request.param, "-shared", "-fPIC", HERE / "narrow_probe.cpp"]
    subprocess.run([*command, "-o", path, *libsimt.linked(libsimt.runtime_library(), "simt")], check=True)
    library = ctypes.CDLL(str(path))

    def call(name, dtype, *arguments):
        arrays = [np.ascontiguousarray(a) for a in arguments if isinstance(a, np.ndarray)]
        out = np.empty(arrays[0].size, dtype)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in [*arrays, out]]
        integers = [ctypes.c_int(a) for a in arguments if isinstance(a, int)]
        getattr(library, name)(*pointers, ctypes.c_long(out.size), *integers)
        return out

    call.library = library
    return call


@pytest.fixture(params=[HALF, BFLOAT16])
def kind(request):
    return request.param


ALL = np.arange(65536, dtype=np.uint16)


def decode(kind, bits):
    if kind == HALF:
        return bits.view(np.float16).astype(np.float64)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def magnitudes(kind):
    """The finite values in order, and one more step for infinity."""
    infinity = 0x7C00 if kind == HALF else 0x7F80
    finite = decode(kind, ALL[:infinity])
    return np.append(finite, 2 * finite[-1] - finite[-2])


@cache
def magnitude_list(kind):
    return magnitudes(kind).tolist()


def rounded(kind, x, mode=NEAREST):
    """The bits of the float64 values x, rounded by definition. NaN gives 0x7fff."""
    table, size, negative = magnitudes(kind), np.abs(x), np.signbit(x)
    low = np.searchsorted(table, np.where(np.isnan(size), 0, size), side="right") - 1
    last = table.size - 1
    below = np.minimum(low, last - 1)
    exact = table[below] == size
    if mode == NEAREST:
        to_low, to_high = size - table[below], table[below + 1] - size
        step = (to_high < to_low) | ((to_high == to_low) & (below % 2 == 1))
    else:
        step = {ZERO: np.isinf(x), UP: ~negative, DOWN: negative}[mode] | np.isinf(x)
    bits = np.where(exact, below, np.where(size >= table[last], last - (0 if mode == NEAREST else ~step), below + step))
    return np.where(np.isnan(x), 0x7FFF, bits + (negative.astype(int) << 15)).astype(np.uint16)


def rounded_fraction(kind, value):
    """The bits of a finite Fraction (not 0), rounded to nearest even."""
    table = magnitude_list(kind)
    size = abs(value)
    low = min(bisect_right(table, size) - 1, len(table) - 2)
    to_low, to_high = size - Fraction(table[low]), Fraction(table[low + 1]) - size
    return low + (to_high < to_low or (to_high == to_low and low % 2)) + (0x8000 if value < 0 else 0)


def hard_floats(kind):
    """All midpoints of neighbours with the floats beside them, random bit patterns, subnormals, infinities, NaN."""
    table = magnitudes(kind)
    middle = ((table[1:] + table[:-1]) / 2).astype(np.float32)
    table = table[:-1].astype(np.float32)
    random = np.random.default_rng(1).integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    special = np.array([0, np.inf, np.nan, 1e-45, 3e38, 65504, 65519.996, 65520, 5.96e-8, 2.98e-8], np.float32)
    everything = np.concatenate([middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf)),
                                 table, random, special])  # fmt: skip
    return np.concatenate([everything, -everything])


def test_to_float_is_exact_for_all_values(probe, kind):
    got, want = probe(f"{kind}_to_float", np.float32, ALL), decode(kind, ALL)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(want))
    assert not np.array_equal(probe(f"{kind}_to_float", np.float32, ALL[::-1].copy()), want, equal_nan=True)


def test_from_float_rounds_correctly(probe, kind):
    x = hard_floats(kind)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        results = [probe(f"{kind}_from_float", np.uint16, x, mode) for mode in range(4)]
        for mode in range(4):
            for result in range(4):
                assert np.array_equal(results[result], rounded(kind, wide, mode)) == (mode == result), (mode, result)
        assert np.array_equal(probe(f"{kind}_from_float", np.uint16, x, 4), results[NEAREST])  # without a mode
        if kind == HALF:  # a second opinion
            number = ~np.isnan(x)
            assert np.array_equal(results[NEAREST][number], x.astype(np.float16).view(np.uint16)[number])


def test_from_double_rounds_once(probe, kind):
    with np.errstate(all="ignore"):
        x = hard_floats(kind).astype(np.float64)
        x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, 0), [1e-320, 1e300, -1e300]])
        got = probe(f"{kind}_from_double", np.uint16, x)
        assert np.array_equal(got, rounded(kind, x))
        through_float = rounded(kind, x.astype(np.float32).astype(np.float64))
    assert not np.array_equal(got, through_float)  # two roundings would be wrong here


def test_from_integers_rounds_once(probe, kind):
    random = np.random.default_rng(2)
    x = random.integers(-(2**63), 2**63 - 1, 20_000) >> random.integers(0, 63, 20_000)
    middle = np.abs(hard_floats(kind))
    middle = middle[(middle > 2**30) & (middle < 2**60)].astype(np.int64) if kind == BFLOAT16 else x
    x = np.concatenate([x, middle, middle + 1, middle - 1, [0, 1, -1, 2**63 - 1, -(2**63), 65519, 65520, 65536]])
    table = magnitude_list(kind)
    for mode in range(4):
        got = probe(f"{kind}_from_long", np.uint16, x.astype(np.int64), mode)
        kept = x[:: max(1, x.size // 3000)]  # exact arithmetic is slow
        for value, bits in zip(kept.tolist(), got[:: max(1, x.size // 3000)].tolist(), strict=True):
            low = min(bisect_right(table, abs(value)) - 1, len(table) - 2)
            if abs(value) == table[low]:
                want = low
            elif mode == NEAREST:
                want = rounded_fraction(kind, Fraction(abs(value)))
            else:
                want = low + (mode == (UP if value > 0 else DOWN))
            assert bits == want + (0x8000 if value < 0 else 0), (value, mode)


def test_arithmetic(probe, kind):
    random = np.random.default_rng(3)
    a, b = random.integers(0, 65536, (2, 300_000), dtype=np.uint16)
    near = random.integers(0, 100_000, 20_000)
    a[near], b[near] = a[near] & 0x83FF, b[near] & 0x83FF  # subnormals and small values
    a[-70_000:] = np.resize(np.array([0, 0x8000, 0x7C00, 0xFC00, 0x7F80, 0xFF80, 0x7FFF, 1, 0x3C00], np.uint16), 70_000)
    x, y = decode(kind, a), decode(kind, b)
    with np.errstate(all="ignore"):
        exact = [rounded(kind, z) for z in (x + y, x - y, x * y, x / y)]  # in double: correct, or too close to matter
        results = [probe(f"{kind}_arithmetic", np.uint16, a, b, operation) for operation in range(15)]
        for i in range(8):  # the functions, then the operators
            for j in range(4):
                assert np.array_equal(results[i], exact[j]) == (i % 4 == j), (i, j)
        smaller, larger = np.fmin(x, y), np.fmax(x, y)
        zeros = (x == 0) & (y == 0)
        smaller = np.where(zeros, np.where(np.signbit(x) | np.signbit(y), -0.0, 0.0), smaller)
        larger = np.where(zeros, np.where(np.signbit(x) & np.signbit(y), -0.0, 0.0), larger)
        either = np.isnan(x) | np.isnan(y)
        saturated = np.clip(np.nan_to_num(x + y, posinf=2, neginf=-2), 0, 1) + 0.0
        wanted = [smaller, larger, np.where(either, np.nan, smaller), np.where(either, np.nan, larger), saturated]
        wanted = [rounded(kind, z) for z in (*wanted, decode(kind, exact[0]) * y)]  # each assignment rounds
        wanted.append(np.where(x < y, a, b))
        for i in range(7):
            for j in range(7):
                assert np.array_equal(results[8 + i], wanted[j]) == (i == j), (i, j)
        assert not np.array_equal(results[13], rounded(kind, (x + y) * y))


def test_fused_multiply_add_rounds_once(probe, kind):
    """Products that lie on a tie, or next to one, and an addend too small to show in double."""
    random = np.random.default_rng(4)
    finite = 0x7C00 if kind == HALF else 0x7F80
    one = 0x3C00 if kind == HALF else 0x3F80
    a, b, c = random.integers(0, finite, (3, 6000), dtype=np.uint16) | random.choice(np.uint16([0, 0x8000]), (3, 6000))
    a[:3000] = one + random.integers(0, 64, 3000)  # products with a few digits too many: ties are frequent
    b[:3000] = one + random.integers(0, 256, 3000)
    c[:3000] = random.integers(1, 40, 3000) + random.choice([0, 0x8000, 0x0C00, 0x8C00], 3000)
    got = probe(f"{kind}_fma", np.uint16, a, b, c)
    x, y, z = decode(kind, a), decode(kind, b), decode(kind, c)
    wrong_in_double = 0
    with np.errstate(all="ignore"):
        naive = rounded(kind, x * y + z)
    for i in range(a.size):
        exact = Fraction(x[i]) * Fraction(y[i]) + Fraction(z[i])
        if exact != 0:
            want = rounded_fraction(kind, exact)
            assert got[i] == want, (x[i], y[i], z[i])
            wrong_in_double += int(naive[i]) != want
    if kind == BFLOAT16:  # the cases are hard enough to tell one rounding from two; half always fits into double
        assert wrong_in_double > 0
    assert not np.array_equal(got, probe(f"{kind}_fma", np.uint16, a, b, c ^ np.uint16(0x8000)))
    bits = np.array([finite, 0, 0x7FFF], np.uint16)  # inf * 0, 0 * NaN and inf + -inf are NaN
    invalid = probe(f"{kind}_fma", np.uint16, bits, np.array([0, 0x7FFF, 0], np.uint16), bits)
    assert invalid.tolist() == [0x7FFF] * 3


def test_comparisons(probe, kind):
    random = np.random.default_rng(5)
    a, b = random.integers(0, 65536, (2, 100_000), dtype=np.uint16)
    b[:30_000] = a[:30_000]
    a[-9:], b[-9:] = np.repeat([0, 0x8000, 0x7FFF], 3), np.tile([0, 0x8000, 0x7FFF], 3)
    x, y = decode(kind, a), decode(kind, b)
    with np.errstate(all="ignore"):
        nan = np.isnan(x) | np.isnan(y)
        ordered = [x == y, (x != y) & ~nan, x < y, x <= y, x > y, x >= y]
        unordered = [o | nan for o in ordered]
        infinite = np.where(x == np.inf, 1, np.where(x == -np.inf, 3, 0))
        want = sum(c.astype(int) << i for i, c in enumerate([*ordered, *unordered, np.isnan(x)])) | infinite << 13
        operators = [x == y, x != y, x < y, x <= y, x > y, x >= y]
        want |= sum(c.astype(int) << i for i, c in enumerate(operators, 15))
    got = probe(f"{kind}_compare", np.uint32, a, b)
    assert np.array_equal(got, want.astype(np.uint32))
    used = np.bitwise_or.reduce(got) & ~np.bitwise_and.reduce(got)
    assert used == 0x1FFFFF  # each comparison was both true and false


def test_to_int_saturates(probe, kind):
    x = decode(kind, ALL)
    for mode, function in enumerate([np.rint, np.trunc, np.ceil, np.floor]):
        want = np.clip(function(np.nan_to_num(x, nan=0.0)), -(2.0**31), 2.0**31 - 1).astype(np.int64)
        assert np.array_equal(probe(f"{kind}_to_int", np.int32, ALL, mode), want)
        assert not np.array_equal(probe(f"{kind}_to_int", np.int32, ALL, (mode + 1) % 4), want)


MATHS = [np.exp, np.log, np.sqrt, lambda x: 1 / np.sqrt(x), lambda x: 1 / x, np.sin, np.cos, np.tanh, np.ceil, np.floor,
         np.trunc, np.rint, np.exp2, np.log2, lambda x: np.power(10.0, x), np.log10, np.negative, np.abs]  # fmt: skip


def test_maths_is_within_one_step_for_all_values(probe, kind):
    with np.errstate(all="ignore"):
        x = decode(kind, ALL)
        for number, function in enumerate(MATHS):
            want, got = function(x), probe(f"{kind}_maths", np.uint16, ALL, number)
            bits = rounded(kind, want)
            number_wanted = ~np.isnan(want)
            steps = np.abs(got.astype(int) - bits.astype(int))[number_wanted]
            assert steps.max() <= 1, number
            assert np.count_nonzero(steps) < 40, number  # float's rounding seldom shows
            if number < 16:  # the sign of a NaN may be changed by the last two
                assert np.isnan(decode(kind, got[~number_wanted])).all()
            other = probe(f"{kind}_maths", np.uint16, ALL, (number + 1) % len(MATHS))
            assert np.abs(other.astype(int) - bits.astype(int))[number_wanted].max() > 1
    if kind == HALF:
        x = np.array([11.0859375, 11.09375], np.float16)  # exp leaves the range of half between these two
        assert np.isinf(probe("half_maths", np.uint16, x.view(np.uint16), 0).view(np.float16)).tolist() == [False, True]


def test_pairs_and_operators(probe):
    assert probe.library.half_pairs() == 0
    assert probe.library.bfloat16_pairs() == 0
    assert probe.library.between_the_types() == 0
