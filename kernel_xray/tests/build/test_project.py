"""Flags of the command line and of a table [tool.kernel-xray]: both reach the compilers, mistakes are named."""

import argparse

import pytest

from kernel_xray.__main__ import main
from kernel_xray.build.arguments import SubjectError
from kernel_xray.build.project import Flags, add_options, flags_of
from kernel_xray.runtime.libsimt import is_clang

TABLE = """
[tool.kernel-xray]
include = ["csrc"]
define = ["SIZE=3", "UNUSED"]
undefine = ["UNUSED"]
std = "c++20"
extra_cuda_cflags = ["-O3"]
budget = "budget.json"
"""
PROGRAM = """#include <size.h>
__global__ void sum(const int* x, int* out) {
#pragma unroll
  for (int i = 0; i < SIZE; ++i) *out += x[i];
}
#if defined(UNUSED) || __cplusplus < 202002L || EXTRA != 5
#error "a flag is missing"
#endif
int main() {
  int *x, *out;
  cudaMalloc(&x, 4 * SIZE);
  cudaMalloc(&out, 4);
  cudaMemset(x, 0, 4 * SIZE);
  cudaMemset(out, 0, 4);
  sum<<<1, 1>>>(x, out);
  return cudaDeviceSynchronize();
}
"""


def flags(folder, *arguments):
    parser = argparse.ArgumentParser()
    add_options(parser.add_argument)
    return flags_of(parser.parse_args(arguments), folder)


def test_the_table_of_the_nearest_project_comes_first(tmp_path):
    (tmp_path / "pyproject.toml").write_text(TABLE)
    inner = tmp_path / "package" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "package" / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    got = flags(inner, "-I", "also", "-DX", "-D", "Y=2", "-U", "Z", "-std", "c++17", "-O3")
    assert got == Flags(
        include=[str(tmp_path / "csrc"), "also"],
        common=["-DSIZE=3", "-DUNUSED", "-UUNUSED", "-std=c++20", "-DX", "-DY=2", "-UZ", "-std=c++17", "-O3"],
        only_cuda=["-O3"],
        budget=tmp_path / "budget.json",
    )
    assert got.cflags == got.common and got.cuda_cflags == ["-O3", *got.common]
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nkernel-xray = 1\n")
    assert flags(inner, "-std=c++20") == Flags(common=["-std=c++20"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("defines = []", "defines is not known; did you mean define?"),
        ("std = 20", "std is 20; give a text"),
        ("include = 'csrc'", "include is 'csrc'; give a list of texts"),
        ("std = ", "is not TOML"),
    ],
)
def test_a_mistake_in_the_table_is_named(tmp_path, line, words):
    (tmp_path / "pyproject.toml").write_text(f"[tool.kernel-xray]\n{line}\n")
    with pytest.raises(SubjectError, match=r"pyproject\.toml") as error:
        flags(tmp_path)
    assert words in str(error.value)


@pytest.mark.slow
def test_flags_reach_the_compiler_and_an_x_ray_keeps_its_own_optimisation(tmp_path, monkeypatch, capsys):
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "size.h").write_text("#define EXTRA FIVE\n")
    (tmp_path / "sum.cu").write_text(PROGRAM)
    (tmp_path / "pyproject.toml").write_text(TABLE)
    n = 7 if is_clang() else 9  # clang++ knows what it has just stored
    (tmp_path / "budget.json").write_text(f'{{"kernels": {{"sum": {{"requests": {n}}}}}}}')
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-O0", "-DFIVE=5", "sum.cu"]) == 0
    assert main(["trace", "-O3", "-DFIVE=5", "sum.cu"]) == 0
    assert "within budget" in capsys.readouterr().err
    (tmp_path / "budget.json").write_text(f'{{"kernels": {{"sum": {{"requests": {n - 1}}}}}}}')
    assert main(["trace", "-DFIVE=5", "sum.cu"]) == 1
    assert f"requests: allowed {n - 1}, got {n}" in capsys.readouterr().out
    assert main(["run", "-DFIVE=6", "sum.cu"]) == 2
    assert "a flag is missing" in capsys.readouterr().err
