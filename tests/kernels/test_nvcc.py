"""If nvcc is installed, every kernel compiles for each GPU that it supports. This needs no GPU.

All files are one translation unit, each in its own namespace: most of the compile time is PyTorch's headers.
"""

import re
import subprocess
import sysconfig

import pytest
from torch.utils import cpp_extension

from helpers.ladder.catalogue.matmul import RUNGS
from helpers.paths import KERNEL_INCLUDE, KERNELS
from helpers.practice import registry
from kernel_xray.build import flags
from kernel_xray.machine.toolchain import find_nvcc

FOLDERS = ("", "matmul", "solutions", "wrong", "template/csrc")
FILES = sorted(path for folder in FOLDERS for path in (KERNELS / folder).glob("*.cu"))
ARCHITECTURES = {75: "compute_75", 80: "compute_80", 90: "compute_90a"}  # Turing, Ampere, Hopper; wgmma needs 90a
NEEDS = re.compile(r"Needs compute capability (\d)\.(\d)")
NVCC = find_nvcc()

needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed: the simulator's tests cover the rest")


def found_from(path, name):
    """The file that `path` includes by this name: beside it, or from the include path."""
    return next(file for folder in (path.parent, KERNEL_INCLUDE) if (file := folder / name).exists())


def is_for(path, architecture):
    """Whether a source supports GPUs of this architecture: its header comment says so if it needs a newer one."""
    text = path.read_text()
    for other in re.findall(r'#include "(.+\.cu)"', text):
        text += found_from(path, other).read_text()
    if "torch/extension.h" in text:
        return False  # needs headers of PyTorch's CUDA build; lesson 02 builds this file
    needs = NEEDS.search(text)
    return architecture >= (int("".join(needs.groups())) if needs else 0)


def starters_in(folder):
    """The starters of the exercises written in CUDA, as files in a folder."""
    for exercise in registry.exercises():
        if exercise.solution.suffix == ".cu":
            path = folder / exercise.starter.name
            path.write_text(registry.read(exercise.name).starter)
            yield path


def together(paths):
    """A source that includes all these files, after all their own includes."""
    includes = re.findall(
        r'^#include [<"][^>"]+\.(?:h|hpp)[>"]|^#include <\w+>', "\n".join(p.read_text() for p in paths), re.M
    )
    lines = list(dict.fromkeys(includes))
    lines += [f'namespace of_{i} {{\n#include "{path}"\n}}' for i, path in enumerate(paths)]
    return "\n".join(lines) + "\n"


def included(path):
    """The headers that a file includes, directly or by way of the course's own."""
    text = path.read_text()
    found = set(re.findall(r"#include <(.+)>", text))
    for own in re.findall(r'#include "(.+)"', text):
        found |= included(found_from(path, own))
    return found


@pytest.mark.parametrize(
    ("macro", "header"),
    [
        ("STD_TORCH_CHECK", "torch/headeronly/util/Exception.h"),
        ("STD_CUDA_CHECK", "torch/csrc/stable/macros.h"),
        ("STABLE_TORCH_LIBRARY", "torch/csrc/stable/library.h"),
    ],
)
def test_a_file_that_uses_a_macro_of_pytorch_includes_its_header(macro, header):
    """Which of PyTorch's headers include which others differs from version to version."""
    use = re.compile(rf"\b{macro}(_IMPL|_FRAGMENT)?\(")
    users = [path for path in (*FILES, *KERNEL_INCLUDE.glob("*.h")) if use.search(path.read_text())]
    assert users
    assert not [path.name for path in users if header not in included(path)]


def compile_for(text, code, folder, optimised=False):
    """Compiles device code only, by default with few optimisations: PTX for compute_XY, machine code for sm_XY.

    PTX is made without any. After that CUDA 13.0's ptxas crashes on matmul/11_wgmma.cu.
    """
    machine_code = code.startswith("sm_")
    wanted = ["-cubin" if machine_code else "-ptx", f"-arch={code}"]
    wanted += [] if optimised else ["-Xcicc", "-O1" if machine_code else "-O0"]
    system = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
    includes = [f"-I{KERNELS / 'include'}", f"-I{KERNELS}", *(f for p in system for f in ("-isystem", p))]
    defines = [*flags.NVCC_DEFINES, "-DUSE_CUDA", "-DTORCH_EXTENSION_NAME=compiled"]
    source = folder / "all.cu"
    source.write_text(text)
    command = [NVCC, "-std=c++17", "--expt-relaxed-constexpr", *wanted, *defines, *includes]  # as PyTorch calls nvcc
    return subprocess.run(list(map(str, [*command, source, "-o", folder / "code"])), capture_output=True, text=True)


@pytest.mark.slow  # on a machine with a GPU the quick suite builds nearly every file with nvcc as it runs it
@needs_nvcc
@pytest.mark.parametrize(
    ("architecture", "code"),
    [*ARCHITECTURES.items(), (90, "sm_90a")],  # of which one is machine code
)
def test_all_kernels_compile(architecture, code, tmp_path):
    chosen = [path for path in [*FILES, *starters_in(tmp_path)] if is_for(path, architecture)]
    assert len(chosen) > 60
    done = compile_for(together(chosen), code, tmp_path)
    assert done.returncode == 0, done.stderr[:5000]
    assert (tmp_path / "code").stat().st_size > 100_000


@needs_nvcc
@pytest.mark.parametrize(
    "text",
    [
        "__global__ void sum(int* x) { *x = __reduce_add_sync(~0u, *x); }",  # since 8.0
        "void host(); __global__ void calls() { host(); }",
        pytest.param(  # four times as long as the others
            f'#include "hopper.h"\nnamespace x {{\n#include "{KERNELS / "matmul/12_cluster.cu"}"\n}}',
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_cannot_be_compiled_is_seen(text, tmp_path):
    assert compile_for(text, ARCHITECTURES[75], tmp_path).returncode != 0


# Kernels that write several elements at a time: file -> a pattern of their mangled names, and bytes per store.
WIDE = {
    "bias_gelu_float4": (r"bias_gelu_(?:backward_)?kernelI\w*Lb1E", 16),
    "matmul_vectorised": ("matmul_vectorised_kernelILb1E", 16),
    "matmul_async": ("matmul_async_kernelILb1E", 16),
    "matmul_warp_tile": (r"matmul_warp_tile_kernelI\w*ELb1EEEv", 16),  # the last argument; Tile has one of its own
    "matmul_wgmma": (r"matmul_wgmma_(?:in_turns_)?kernel", 8),
}
STORES = {16: r"\.v4\.[buf]32|\.v2\.[buf]64", 8: r"\.v2\.[buf]32|\.[buf]64"}  # in PTX


@pytest.mark.slow
@needs_nvcc
def test_nvcc_keeps_wide_stores_whole(tmp_path):
    """A store of 8 or 16 bytes in the source is one in PTX too. The simulator sees only the source."""
    paths = [KERNELS / RUNGS.get(name, f"{name}.cu") for name in WIDE]
    done = compile_for(together(paths), "compute_90a", tmp_path, optimised=True)
    assert done.returncode == 0, done.stderr[:5000]
    kernels = re.split(r"(?=\.entry )", (tmp_path / "code").read_text())[1:]
    for name, (wanted, bytes_at_a_time) in WIDE.items():
        found = [text for text in kernels if re.search(wanted, text.partition("(")[0])]
        assert found, name
        for text in found:
            stores = re.findall(r"st\.global[\w.]*", text)
            narrow = [store for store in stores if not re.search(STORES[bytes_at_a_time], store)]
            assert len(narrow) < len(stores), (name, stores)
            assert len(narrow) <= 2, (name, stores)  # partial sums of a backward kernel


def test_a_source_says_what_it_needs():
    assert [is_for(KERNELS / "matmul/10_mma.cu", a) for a in ARCHITECTURES] == [False, True, True]
    assert [is_for(KERNELS / "matmul/12_cluster.cu", a) for a in ARCHITECTURES] == [False, False, True]
    assert all(is_for(KERNELS / "vector_add.cu", a) for a in ARCHITECTURES)
    assert not is_for(KERNELS / "elementwise_mult.cu", 90)
