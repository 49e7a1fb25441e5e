"""A damaged file of the build cache is noticed and built again; the cache may lie in a folder with blanks.

test_fault_rounds.py has faults at random.
"""

import os
import subprocess
import sys

import pytest
from fault_rounds import quick_compiler, write_kernel

import kernel_xray
from kernel_xray.machine import cache
from kernel_xray.runtime.libsimt import is_clang

LOAD = """
import sys, torch, kernel_xray
y = torch.zeros(4, device=kernel_xray.device)
kernel_xray.load("t_damage", sys.argv[1], is_python_module=False).run(y)
print(y.sum().item())
"""
HEADERS = pytest.param(
    "headers-*/*.gch", marks=pytest.mark.skipif(is_clang(), reason="clang++ builds without precompiled headers")
)
FOUR = 4.0  # the sum of four ones


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """libsimt is built in a second. Before `folder`, since it takes the objects from the cache of the tests."""
    monkeypatch.setenv("PATH", quick_compiler(tmp_path / "bin")["PATH"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a source, and a cache beside it that shares only what this test does not damage."""
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    write_kernel(tmp_path, 1, 0)
    return tmp_path


def share(folder, shared, *patterns):
    for place in (place for pattern in patterns for place in shared.glob(pattern)):
        (folder / "cache" / place.name).symlink_to(place)


def answer(folder):
    """The number that a new process prints, and what it says on stderr."""
    command = [sys.executable, "-c", LOAD, str(folder / "k.cu")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout), done.stderr


SHARED = cache.root()


@pytest.mark.slow  # two builds in new processes; test_artifacts.py notices damage without one
def test_a_truncated_kernel_is_built_again(folder):
    share(folder, SHARED, "simt-*", "headers-*")
    assert answer(folder)[0] == FOUR
    (library,) = (folder / "cache").glob("t_damage-*/t_damage*.so")
    os.truncate(library, 5000)
    value, said = answer(folder)
    assert value == FOUR and "was damaged (5,000 of" in said and "building it again" in said
    assert "build cache" not in answer(folder)[1]


@pytest.mark.slow
@pytest.mark.skipif(kernel_xray.target != "simulator", reason="a GPU build has only the kernel's library")
@pytest.mark.parametrize("pattern", ["simt-[0-9a-f]*/libsimt.so", "simt-faults-*/*.so", HEADERS])
def test_a_truncated_part_of_the_simulator_is_built_again(quick, folder, pattern):
    assert answer(folder)[0] == FOUR
    (part,) = (folder / "cache").glob(pattern)
    os.truncate(part, part.stat().st_size // 2)
    if part.suffix == ".gch":  # read by the next build, not by the next load
        write_kernel(folder, 0, 1)
    value, said = answer(folder)
    assert value == FOUR and f"{part} was damaged" in said


@pytest.mark.slow
@pytest.mark.skipif(kernel_xray.target != "simulator", reason="a GPU build links no library of the simulator")
def test_the_folder_of_the_cache_may_have_blanks(folder, monkeypatch):
    (folder / "cache").rename(folder / "ein Häuschen")
    (folder / "cache").symlink_to(folder / "ein Häuschen")
    share(folder, SHARED, "simt-*", "headers-*")
    monkeypatch.setenv(cache.VARIABLE, str(folder / "ein Häuschen"))
    uses = "#include <cublas_v2.h>\nvoid used() { cublasHandle_t h; cublasCreate(&h); }\n"
    (folder / "k.cu").write_text(uses + (folder / "k.cu").read_text())
    assert answer(folder)[0] == FOUR
