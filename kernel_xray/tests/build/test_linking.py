"""Kernels are linked against empty libraries, and still need PyTorch's by name when they are loaded."""

import platform
import shlex
import subprocess
from pathlib import Path

import pytest
import torch

from kernel_xray.build import linking, loader
from kernel_xray.machine import cache
from kernel_xray.runtime import libsimt

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="the file format of libraries is not ELF")


def needed(library):
    shown = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    return {line.split("[")[1].rstrip("]") for line in shown.splitlines() if "(NEEDED)" in line}


def test_the_empty_libraries_have_the_names_of_the_large_ones():
    folders = [Path(shlex.split(flag)[0].removeprefix("-L")) for flag in linking.flags() if flag.startswith("-L")]
    for name, folder in zip(linking._LARGE, folders, strict=True):
        empty, real = folder / f"lib{name}.so", Path(torch.__file__).parent / "lib" / f"lib{name}.so"
        assert empty.stat().st_size < 50_000 < real.stat().st_size
        shown = subprocess.run(["readelf", "-d", str(empty)], capture_output=True, text=True, check=True).stdout
        assert f"Library soname: [lib{name}.so]" in shown


@pytest.mark.slow  # builds that every other test needs linked
@pytest.mark.parametrize("empty", [True, False])
def test_a_kernel_needs_the_same_libraries_and_computes_the_same(tmp_path, monkeypatch, empty):
    if not empty:
        monkeypatch.setattr(linking, "flags", list)
    source = tmp_path / "scale.cu"
    text = Path(__file__).with_name("strided.cu").read_text(encoding="utf-8")
    source.write_text(f"{text}\n// linked against {'empty' if empty else 'real'} libraries\n")
    folder = tmp_path / "built"
    folder.mkdir()
    ops = loader.load(
        f"linked_{empty}", [source], is_python_module=False, traced=True, build_directory=str(folder)
    ).untraced
    x = torch.arange(9.0)
    assert torch.equal(ops.scale(x, 2.0, 1), 2 * x)
    (library,) = folder.glob("*.so")
    assert {"libtorch_cpu.so", "libc10.so", "libsimt.so"} <= needed(library)
    commands = (folder / "build.ninja").read_text()
    assert ("simt-linking-" in commands) == empty


def test_without_a_linker_for_them_the_build_goes_on_with_the_real_ones(monkeypatch, tmp_path):
    def fails(arguments, output):
        raise RuntimeError("no linker")

    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(libsimt, "run_compiler", fails)
    assert linking.flags() == []
