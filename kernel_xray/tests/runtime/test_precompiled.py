"""Precompiled headers: used where they fit, harmless where they do not."""

import shutil
import threading
from pathlib import Path

import pytest
import torch

import kernel_xray
from kernel_xray.build import flags, sources
from kernel_xray.machine import cache
from kernel_xray.runtime import faults, libsimt, precompiled

KERNEL = Path(__file__).parents[1] / "build" / "strided.cu"
FLAGS = flags.of_kernels(traced=False)
AS_WRITTEN = [*flags.filled_locals(), *flags.loads_where_written()]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(kernel_xray.target != "simulator", reason="nvcc compiles kernels for a GPU"),
    pytest.mark.skipif(not libsimt.finds_precompiled_headers(), reason="only g++ finds precompiled headers by itself"),
]


def scales_with(folder, monkeypatch, tmp_path):
    """Builds a kernel anew with `folder` first among the include paths, and returns whether it is right."""
    monkeypatch.setattr(precompiled, "folder", lambda flags: folder)
    source = tmp_path / "scale.cu"
    source.write_text(KERNEL.read_text() + f"// {tmp_path}\n")
    ops = kernel_xray.load("precompiled_scale", [source], is_python_module=False)
    x = torch.arange(5.0)
    return torch.equal(ops.scale(x, 2.0, 1), 2 * x)


def test_it_is_made_once_and_the_compiler_takes_it(tmp_path):
    folder = precompiled.folder(FLAGS)
    made = folder / f"{precompiled.HEADER}.gch"
    before = made.stat().st_mtime_ns
    assert precompiled.folder(FLAGS) == folder
    assert made.stat().st_mtime_ns == before
    source = tmp_path / "uses.cpp"
    source.write_text(f'#include "{precompiled.HEADER}"\nint x;\n')
    use = [f"-I{folder}", *precompiled._arguments(FLAGS), "-Winvalid-pch", "-Werror", "-c", str(source)]
    libsimt.run_compiler(use, tmp_path / "uses.o")
    libsimt.run_compiler([*use, "-DOF_THE_SOURCE_ALONE=1"], tmp_path / "uses.o")
    with pytest.raises(RuntimeError, match="not used because"):  # so any -D may be given
        libsimt.run_compiler([*use, "-DNDEBUG"], tmp_path / "uses.o")
    libsimt.run_compiler([*use, *AS_WRITTEN], tmp_path / "uses.o")
    with pytest.raises(RuntimeError, match=r"not used because|created with|invalid-pch"):
        libsimt.run_compiler([*use, "-g", "-O0"], tmp_path / "uses.o")


@pytest.mark.parametrize(("given", "taken"), [(AS_WRITTEN, True), (["-DNDEBUG"], True), (["-fno-inline"], False)])
def test_flags_that_change_no_header_keep_it(monkeypatch, tmp_path, given, taken):
    asked, made = [], precompiled.folder
    monkeypatch.setattr(precompiled, "folder", lambda flags: asked.append(flags) or made(flags))
    source = tmp_path / "scale.cu"
    source.write_text(KERNEL.read_text() + f"// {tmp_path}\n")
    kernel_xray.load("scale_as_written", [source], is_python_module=False, extra_cflags=given)
    assert bool(asked) == taken


def test_another_copy_of_the_package_has_one_of_its_own(monkeypatch, tmp_path):
    """A kernel finds its own copy's headers, which `#pragma once` would not know: it would read them a second time."""
    mine = precompiled.folder(FLAGS)
    shutil.copytree(libsimt.INCLUDE, tmp_path / "include")
    monkeypatch.setattr(libsimt, "INCLUDE", tmp_path / "include")
    assert precompiled.folder(FLAGS) not in (mine, None)


def test_headers_library_and_bridge_are_made_at_the_same_time(monkeypatch):
    all_three = threading.Barrier(3, timeout=60)
    monkeypatch.setattr(precompiled, "folder", lambda flags: Path(f"{flags}{all_three.wait()}").parent)
    monkeypatch.setattr(faults, "library", all_three.wait)
    monkeypatch.setattr(libsimt, "runtime_library", all_three.wait)
    assert precompiled.with_library(FLAGS) == Path()


@pytest.mark.parametrize("made", [True, False])
def test_without_a_readable_one_the_build_goes_on(monkeypatch, tmp_path, made):
    (tmp_path / f"{precompiled.HEADER}.gch").write_bytes(b"not a header")
    assert scales_with(tmp_path if made else None, monkeypatch, tmp_path)


def test_a_source_may_be_part_of_another_one(tmp_path):
    (tmp_path / "part.cu").write_text(KERNEL.read_text())
    (tmp_path / "whole.cu").write_text('#include <torch/csrc/stable/library.h>\n#include "part.cu"\n')
    scale = kernel_xray.load("scale_in_parts", [tmp_path / "whole.cu"], is_python_module=False).scale
    x = torch.arange(5.0)
    assert torch.equal(scale(x, 2.0, 1), 2 * x)


def test_a_compiler_that_fails_is_let_go(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    monkeypatch.setattr(precompiled, "HEADER", "there_is_none.h")
    assert precompiled.folder(FLAGS) is None


@pytest.mark.parametrize(
    ("text", "stable"),
    [
        ("#include <torch/csrc/stable/library.h>\n#include <cmath>", True),
        ("#include <torch/extension.h>", False),
        ("#include <torch/csrc/stable/library.h>\n#include <ATen/ATen.h>", False),
        ("#include <cstdio>", False),
    ],
)
def test_sources_for_the_stable_abi_alone(text, stable):
    assert sources.uses_stable_abi({Path("a.cu"): text}) == stable
