"""The simulator's device headers by themselves: each compiles alone, and refuses what CUDA refuses."""

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from simt_programs import COMPILERS, CROSS

from kernel_xray.machine.paths import INCLUDE

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
OURS = ["*.h", "simt/*.h", "cooperative_groups/*.h", "nvtx3/*.h"]
FOUND = [path for glob in OURS for path in INCLUDE.glob(glob)]
# Those in ATen/, c10/ and torch/ need PyTorch's own headers, and so do those that include them.
HEADERS = sorted(str(p.relative_to(INCLUDE)) for p in FOUND if "torch" not in p.name and "<torch/" not in p.read_text())
STRICT = ["-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", f"-I{HERE}"]


def compile_text(text, compiler=None, standard="c++17", *flags):
    command = [compiler or COMPILERS[0], f"-std={standard}", *STRICT, *flags, "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


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
# The same program on a GPU


@pytest.mark.gpu
@pytest.mark.skipif(not (shutil.which("nvcc") and torch.cuda.is_available()), reason="needs an NVIDIA GPU and nvcc")
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
