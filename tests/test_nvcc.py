"""Where nvcc is, every kernel compiles with it, GPU or not: for the oldest GPU that it is for, and for newer ones."""

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from helpers import flags
from helpers.toolchain import find_nvcc

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
ARCHITECTURES = (75, 80, 90)  # Turing, Ampere, Hopper; a source is compiled for its oldest and for the newest
NEEDS = re.compile(r"Needs compute capability (\d)\.(\d)")
NVCC = find_nvcc()
COURSE = sorted(KERNELS.glob("*.cu"))
OTHERS = sorted(path for folder in ("solutions", "wrong", "template/csrc") for path in (KERNELS / folder).glob("*.cu"))

needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed: the simulator's tests cover the rest")


def architectures(path):
    """Those of ARCHITECTURES that a source is for: its header says so if it needs a newer one."""
    needs = NEEDS.search(path.read_text())
    oldest = int("".join(needs.groups())) if needs else 0
    return [architecture for architecture in ARCHITECTURES if architecture >= oldest]


def compile_for(path, architecture, folder):
    """Device code only, not optimised: PTX, and for the newest, of which wgmma is a part, machine code."""
    wanted = ["-cubin", "-arch=sm_90a"] if architecture == 90 else ["-ptx", f"-arch=compute_{architecture}"]
    system = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
    includes = [f"-I{KERNELS / 'include'}", *(f for p in system for f in ("-isystem", p))]
    defines = [*flags.NVCC_DEFINES, "-DUSE_CUDA", "-DTORCH_EXTENSION_NAME=compiled"]
    standard = ["-std=c++17", "--expt-relaxed-constexpr"]  # as PyTorch has it
    fast = ["-Xcicc", "-O0", "-Xptxas", "-O0"] if architecture == 90 else ["-Xcicc", "-O0"]
    command = [NVCC, *standard, *wanted, *fast, *defines, *includes, path, "-o", folder / "code"]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def test_there_are_kernels_for_each_architecture():
    assert [sum(architectures(path)[0] == a for path in COURSE) > 0 for a in ARCHITECTURES] == [True] * 3
    assert len(COURSE) > 20
    assert len(OTHERS) > 30


@needs_nvcc
@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)
def test_a_kernel_compiles_for_the_oldest_and_the_newest(path, tmp_path):
    if "torch/extension.h" in path.read_text():
        pytest.skip("PyTorch's C++ headers for CUDA come with its CUDA build only; lesson 02 builds this file")
    chosen = architectures(path)
    for architecture in sorted({chosen[0], chosen[-1]}):
        done = compile_for(path, architecture, tmp_path)
        assert done.returncode == 0, f"compute capability {architecture}: {done.stderr[:3000]}"
        assert "warning" not in done.stderr, done.stderr[:3000]


@needs_nvcc
@pytest.mark.parametrize("path", OTHERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_solutions_and_wrong_kernels_compile_for_the_oldest_that_they_are_for(path, tmp_path):
    done = compile_for(path, architectures(path)[0], tmp_path)
    assert done.returncode == 0, done.stderr[:3000]


@needs_nvcc
def test_what_an_architecture_lacks_is_seen(tmp_path):
    done = compile_for(KERNELS / "matmul_cluster.cu", 80, tmp_path)
    assert done.returncode != 0
    source = tmp_path / "fast_sum.cu"
    source.write_text("__global__ void sum(int* x) { *x = __reduce_add_sync(~0u, *x); }\n")
    assert compile_for(source, 75, tmp_path).returncode != 0
    assert compile_for(source, 80, tmp_path).returncode == 0
