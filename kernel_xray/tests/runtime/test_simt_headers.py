"""The simulator's device headers by themselves: each compiles alone and computes the right values.

The C++ programs of this folder are linked with a stub of the run-time library (32 threads act as a warp). Each of their
checks must hold, and must fail once the value under test is corrupted (`--sabotage`). The 16-bit types are compared
with references computed here from the definition of rounding.
"""

import ctypes
import re
import shutil
import subprocess
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from simt_programs import COMPILERS, CROSS, EMULATOR, HAS_AARCH64

from kernel_xray.machine.paths import INCLUDE

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
OURS = ["*.h", "simt/*.h", "cooperative_groups/*.h", "nvtx3/*.h"]
FOUND = [path for glob in OURS for path in INCLUDE.glob(glob)]
# Those in ATen/, c10/ and torch/ need PyTorch's own headers, and so do those that include them.
HEADERS = sorted(str(p.relative_to(INCLUDE)) for p in FOUND if "torch" not in p.name and "<torch/" not in p.read_text())
STRICT = ["-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", f"-I{HERE}"]
OPTIMISED = ["-O2", "-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math"]  # as kernels are compiled
HALF, BFLOAT16 = "half", "bfloat16"
NEAREST, ZERO, UP, DOWN = range(4)


def compile_text(text, compiler=None, standard="c++17", *flags):
    command = [compiler or COMPILERS[0], f"-std={standard}", *STRICT, *flags, "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def build(source, output, *flags, compiler=None):
    command = [compiler or COMPILERS[0], "-std=c++17", *STRICT, *flags, HERE / source, "-o", output, "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    return output


# ----------------------------------------------------------------------------------------------------------------------
# Every header compiles


def test_a_compiler_and_headers_are_found():
    assert COMPILERS
    assert len(HEADERS) > 20


@pytest.mark.parametrize(("compiler", "standard"), [("g++", "c++17"), ("clang++", "c++20"), (CROSS, "c++17")])
def test_each_header_compiles_alone(compiler, standard):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    with ThreadPoolExecutor(max_workers=2) as pool:
        # Including a header twice must work.
        runs = pool.map(lambda h: compile_text(f'#include "{h}"\n' * 2, compiler, standard), HEADERS)
        failures = {h: run.stderr[:1000] for h, run in zip(HEADERS, runs, strict=True) if run.returncode != 0}
    assert not failures
    assert compile_text('#include "cuda_fp16.h"\nint f() { }\n', compiler, standard).returncode != 0  # -Werror is on


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_all_headers_together(compiler, standard):
    together = "".join(f'#include "{h}"\n' for h in reversed(HEADERS))
    newer = "".join(  # newer C libraries have more of CUDA's functions
        f'extern "C" double {name}(double) noexcept; extern "C" float {name}f(float) noexcept;\n'
        for name in ("rsqrt", "sinpi", "cospi", "exp10")
    )
    user = newer + "#include <cmath>\n#include <algorithm>\n#include <complex>\nusing namespace std;\n" + together
    use = "float f(float x, double y) { return max(min(x, %s), norm3df(x, abs(x), rsqrt(x) + rsqrtf(x) + sinpi(y))); }"
    done = compile_text(user + use % "1.0f", compiler, standard)
    assert done.returncode == 0, done.stderr[:2000]
    assert compile_text(user + use % '"one"', compiler, standard).returncode != 0


# ----------------------------------------------------------------------------------------------------------------------
# Statements that compile in CUDA compile; those that do not are refused

FP16, BF16, CG = '#include "cuda_fp16.h"\n', '#include "cuda_bf16.h"\n', '#include "cooperative_groups/reduce.h"\n'
PAIRS = {  # name: (accepted statement, refused statement, what the compiler says)
    "atomicAdd": ("unsigned long long x; atomicAdd(&x, 1);", "long long x; atomicAdd(&x, 1);", "atomicAdd"),
    "atomicAdd of char": ("int x; atomicAdd(&x, 1);", "char x; atomicAdd(&x, 1);", "atomicAdd"),
    "atomicSub": ("int x; atomicSub(&x, 1);", "float x; atomicSub(&x, 1);", "atomicSub"),
    "atomicMax": ("long long x; atomicMax(&x, 1ll);", "float x; atomicMax(&x, 1.f);", "atomicMax"),
    "atomicCAS": ("unsigned short x; atomicCAS(&x, x, x);", "short x; atomicCAS(&x, x, x);", "atomicCAS"),
    "__ldg": ("float4 x; __ldg(&x);", "struct { float4 a[2]; } x; __ldg(&x);", "at most 16 bytes"),
    "max": ("(void)max(1, 2u);", "(void)max(1, 2ll);", "ambiguous"),
    "shuffle": ("__shfl_sync(~0u, 1.0, 3);", "__shfl_sync(~0u, float4{}, 3);", "__shfl_sync"),
    "vector": ("float4 a{1, 2, 3, 4}; (void)a;", "float4 a{}; (void)(a + a);", "operands|operator"),
    "tile": ("cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());",
             "cooperative_groups::tiled_partition<64>(cooperative_groups::this_thread_block());", "tiles of 1, 2, 4"),
    "half literal": ("half h = 1.0f; (void)(h + half(1.0f));", "half h = 1.0f; (void)(h + 1.0f);", "ambiguous"),
    "half bits": ("half h = 1; (void)__half_raw(h).x;", "half h = 1; (void)h.__x;", "protected"),
    "bfloat16 from half": ("half h = 1; (void)nv_bfloat16(h);", "half h = 1; nv_bfloat16 b = h; (void)b;", ""),
}  # fmt: skip
# PyTorch's build defines most of these macros for every .cu file.
SWITCHED_OFF = {  # name: (macro, statement)
    "half operators": ("__CUDA_NO_HALF_OPERATORS__", "half h = __float2half(1); h += h;"),
    "half conversions": ("__CUDA_NO_HALF_CONVERSIONS__", "half h = 1.0f; (void)h;"),
    "half2 operators": ("__CUDA_NO_HALF2_OPERATORS__", "half2 h{}; h = h * h;"),
    "bfloat16 conversions": ("__CUDA_NO_BFLOAT16_CONVERSIONS__", "nv_bfloat16 h = 1.0f; (void)h;"),
    "bfloat16 operators": ("__CUDA_NO_BFLOAT16_OPERATORS__", "nv_bfloat16 h{}; h = h * h;"),
}


def refused(statements, compiler, *flags):
    """Compiles each statement in a separate function; returns those that errors name, and the whole output."""
    text = '#include "cuda_runtime.h"\n' + FP16 + BF16 + CG + "#line 1000\n"
    text += "".join(f"void kernel{i}() {{ {s} }}\n" for i, s in enumerate(statements))
    unlimited = "-fmax-errors=0" if compiler == "g++" else "-ferror-limit=0"
    done = compile_text(text, compiler, "c++17", unlimited, "-Wno-uninitialized", "-Wno-unused-value", *flags)
    named = {int(line) - 1000 for line in re.findall(r"<stdin>:(\d+):", done.stderr)}
    assert (done.returncode != 0) == bool(named), done.stderr[:2000]
    return named, done.stderr


def test_accepts_and_refuses(compiler):
    assert refused([pair[0] for pair in PAIRS.values()], compiler) == (set(), "")
    named, said = refused([pair[1] for pair in PAIRS.values()], compiler)
    assert [name for i, name in enumerate(PAIRS) if i not in named] == []
    for name, (_, _, message) in PAIRS.items():
        assert any(word in said for word in message.split("|")), name


def test_operators_and_conversions_switched_off(compiler):
    statements = [statement for _, statement in SWITCHED_OFF.values()]
    assert refused(statements, compiler) == (set(), "")
    for i, (name, (macro, _)) in enumerate(SWITCHED_OFF.items()):
        named, _ = refused(statements, compiler, f"-D{macro}")
        assert i in named, name
        other_types = {j for j, s in enumerate(statements) if s.split()[0] != statements[i].split()[0]}
        assert not other_types & named, name


@pytest.mark.parametrize("flags", [[], ["-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__"]])
def test_conversion_to_and_from_pytorch_types(compiler, flags):
    torch_like = "namespace c10 { struct alignas(2) %s { unsigned short x; struct from_bits_t {}; static constexpr"
    torch_like += " from_bits_t from_bits() { return {}; } %s() = default; constexpr %s(unsigned short b, from_bits_t)"
    torch_like += " : x(b) {} %s(float); operator float() const; }; }\n"
    types = "".join(torch_like % ((name,) * 4) for name in ("Half", "BFloat16"))
    use = "void f(c10::Half& h, c10::BFloat16& b) { __half x = h; __nv_bfloat16 y(b); h = x; b = y; %s; }"
    good = compile_text(BF16 + types + use % "c10::Half z(x); (void)z", compiler, "c++17", *flags)
    assert good.returncode == 0, good.stderr[:2000]
    for mixed in ("h = y", "b = x", "__half z = b"):
        assert compile_text(BF16 + types + use % mixed, compiler, "c++17", *flags).returncode != 0


# ----------------------------------------------------------------------------------------------------------------------
# Programs with their own references


def check_program(program, *runner):
    honest = subprocess.run([*runner, str(program)], capture_output=True, text=True, timeout=300)
    assert honest.returncode == 0, [line for line in honest.stdout.splitlines() if not line.startswith("ok")]
    spoilt = subprocess.run([*runner, str(program), "--sabotage"], capture_output=True, text=True, timeout=300)
    assert not [line for line in spoilt.stdout.splitlines() if line.startswith("ok")], "these checks cannot fail"
    assert len(honest.stdout.splitlines()) == len(spoilt.stdout.splitlines()) > 50


AARCH64 = pytest.param(CROSS, marks=pytest.mark.skipif(not HAS_AARCH64, reason="no AArch64 compiler and emulator"))


@pytest.mark.parametrize("compiler", [*COMPILERS, AARCH64])
@pytest.mark.parametrize("source", ["intrinsics_test.cpp", "threads_test.cpp"])
def test_program(source, compiler, tmp_path):
    flags, runner = (["-static"], [EMULATOR]) if compiler == CROSS else ([], [])
    check_program(build(source, tmp_path / "program", *OPTIMISED, *flags, compiler=compiler), *runner)


# ----------------------------------------------------------------------------------------------------------------------
# 16-bit types


@pytest.fixture(scope="module", params=[OPTIMISED, ["-O3", "-march=native"]], ids=["as kernels", "native"])
def probe(request, tmp_path_factory):
    """narrow_probe.cpp as a function: probe(name, output dtype, arrays..., integers...) -> output array."""
    path = build("narrow_probe.cpp", tmp_path_factory.mktemp("probe") / "p.so", "-shared", "-fPIC", *request.param)
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
        exact = [x + y, x - y, x * y, x / y]  # in double: correct, or too close to matter
        results = [probe(f"{kind}_arithmetic", np.uint16, a, b, operation) for operation in range(9)]
        for i in range(4):
            for j in range(4):
                assert np.array_equal(results[i], rounded(kind, exact[j])) == (i == j), (i, j)
        smaller, larger = np.fmin(x, y), np.fmax(x, y)
        zeros = (x == 0) & (y == 0)
        smaller = np.where(zeros, np.where(np.signbit(x) | np.signbit(y), -0.0, 0.0), smaller)
        larger = np.where(zeros, np.where(np.signbit(x) & np.signbit(y), -0.0, 0.0), larger)
        either = np.isnan(x) | np.isnan(y)
        saturated = np.clip(np.nan_to_num(x + y, posinf=2, neginf=-2), 0, 1) + 0.0
        wanted = [smaller, larger, np.where(either, np.nan, smaller), np.where(either, np.nan, larger), saturated]
        for i in range(5):
            for j in range(5):
                assert np.array_equal(results[4 + i], rounded(kind, wanted[j])) == (i == j), (i, j)


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
    got = probe(f"{kind}_compare", np.uint16, a, b)
    assert np.array_equal(got, want.astype(np.uint16))
    used = np.bitwise_or.reduce(got) & ~np.bitwise_and.reduce(got)
    assert used == 0x7FFF  # each comparison was both true and false


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


# ----------------------------------------------------------------------------------------------------------------------
# The same program on a GPU


@pytest.mark.gpu
@pytest.mark.skipif(not (shutil.which("nvcc") and shutil.which("nvidia-smi")), reason="needs an NVIDIA GPU and nvcc")
def test_agreement_with_a_gpu(tmp_path):
    """Each function returns the GPU's bits on 65,536 inputs; where the GPU approximates, within one step of 16 bits."""
    source = str(HERE / "agreement.cu")
    for name, command in {
        "gpu": ["nvcc", "-arch=native", "-std=c++17", "-O2", source],
        "simulator": [COMPILERS[0], "-x", "c++", "-std=c++17", "-O2", f"-I{INCLUDE}", source],
    }.items():
        subprocess.run([*command, "-o", str(tmp_path / name)], check=True, capture_output=True)
        names = subprocess.run([tmp_path / name, tmp_path / f"{name}.bin"], check=True, capture_output=True, text=True)
    gpu, simulator = (np.fromfile(tmp_path / f"{n}.bin", np.uint32).reshape(-1, 65536) for n in ("gpu", "simulator"))
    names = names.stdout.split("\n")[: len(gpu)]
    exact = {name: np.count_nonzero(gpu[i] != simulator[i]) for i, name in enumerate(names) if name[0] != "~"}
    assert not {name: count for name, count in exact.items() if count}
    for i, name in enumerate(names):
        assert np.unique(gpu[i]).size > 1, name  # a function of its input
        if name[0] == "~":
            steps = np.abs((gpu[i] & 0xFFFF).astype(int) - (simulator[i] & 0xFFFF).astype(int))
            assert steps.max() <= 1, name
            assert np.count_nonzero(steps) < 40, name
