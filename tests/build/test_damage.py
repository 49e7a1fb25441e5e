"""Whatever happens to the build cache, the next load answers right, and nobody has to delete anything.

KERNEL_LADDER_FAULT_ROUNDS is the number of rounds of the last test, 3 by default; KERNEL_LADDER_FAULT_SEED picks them.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import helpers
from helpers.machine import cache

SOURCE = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include <cuda_runtime.h>
__global__ void fill(float* y) { y[threadIdx.x] = VALUE; }
void run(torch::stable::Tensor y) { fill<<<1, 4>>>(y.mutable_data_ptr<float>()); }
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("run(Tensor(a!) y) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("run", TORCH_BOX(&run)); }
"""
LOAD = """
import sys, torch, helpers
y = torch.zeros(4, device=helpers.device)
helpers.load("t_damage", sys.argv[1], is_python_module=False).run(y)
print(y.sum().item())
"""
FOUR = 4.0  # what the program above prints if VALUE is 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a source, and a cache beside it that shares only what this test does not damage."""
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "k.cu").write_text(SOURCE.replace("VALUE", "1"))
    return tmp_path


def share(folder, shared, *patterns):
    for place in (place for pattern in patterns for place in shared.glob(pattern)):
        (folder / "cache" / place.name).symlink_to(place)


def start(folder, **options):
    return subprocess.Popen(
        [sys.executable, "-c", LOAD, str(folder / "k.cu")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def answer(folder):
    """The number that a new process prints, and what it says on stderr."""
    process = start(folder)
    printed, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    return float(printed), said


SHARED = cache.root()


def test_a_truncated_kernel_is_built_again(folder):
    share(folder, SHARED, "simt-*", "headers-*")
    assert answer(folder)[0] == FOUR
    (library,) = (folder / "cache").glob("t_damage-*/t_damage*.so")
    os.truncate(library, 5000)
    value, said = answer(folder)
    assert value == FOUR and "was damaged (5,000 of" in said and "building it again" in said
    assert "build cache" not in answer(folder)[1]


@pytest.mark.slow
@pytest.mark.skipif(helpers.target != "simulator", reason="a GPU build has only the kernel's library")
@pytest.mark.parametrize("pattern", ["simt-[0-9a-f]*/libsimt.so", "simt-faults-*/*.so", "headers-*/*.gch"])
def test_a_truncated_part_of_the_simulator_is_built_again(folder, pattern):
    assert answer(folder)[0] == FOUR
    (part,) = (folder / "cache").glob(pattern)
    os.truncate(part, part.stat().st_size // 2)
    if part.suffix == ".gch":  # read by the next build, not by the next load
        (folder / "k.cu").write_text(SOURCE.replace("VALUE", "1 + 0"))
    value, said = answer(folder)
    assert value == FOUR and f"{part} was damaged" in said


def truncate_one(folder, chance):
    files = [path for path in (folder / "cache").rglob("*") if path.is_file() and not path.is_symlink()]
    path = chance.choice(files)
    os.truncate(path, chance.randrange(path.stat().st_size + 1))


def kill_builders(folder, chance, group=True):
    processes = [start(folder, start_new_session=True) for _ in range(3)]
    time.sleep(chance.uniform(1, 8))
    for process in processes:
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    for process in processes:
        process.communicate()


def kill_parents(folder, chance):
    kill_builders(folder, chance, group=False)


def kill_compilers(folder, chance):
    process = start(folder)
    time.sleep(chance.uniform(1, 6))
    subprocess.run(["pkill", "-KILL", "-f", f"cc1plus.*{folder}"], check=False)
    process.communicate()


def build_at_once(folder, chance):
    processes = [start(folder) for _ in range(4)]
    assert {float(process.communicate(timeout=600)[0]) for process in processes} == {FOUR}


def set_clock_back(folder, chance):
    """To the cache's files it looks as if they had been written tomorrow."""
    tomorrow = time.time() + 86400
    for path in (folder / "cache").rglob("*"):
        if not path.is_symlink():
            os.utime(path, (tomorrow, tomorrow))


def fill_disk(folder, chance):
    """The build runs out of space: no file may grow beyond a limit."""
    size = chance.choice((1_000, 30_000, 100_000))
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"
    subprocess.run([sys.executable, "-c", code + LOAD, str(folder / "k.cu")], capture_output=True, check=False)


FAULTS = [truncate_one, kill_builders, kill_parents, kill_compilers, build_at_once, set_clock_back, fill_disk]


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_after_any_fault_a_load_answers_right(folder):
    share(folder, SHARED, "headers-*")  # of 90 MB; the other parts are built here, and damaged
    rounds = int(os.environ.get("KERNEL_LADDER_FAULT_ROUNDS", "3"))
    chance = random.Random(os.environ.get("KERNEL_LADDER_FAULT_SEED", "0"))
    answer(folder)
    for i in range(rounds):
        if chance.random() < 0.5:  # another kernel: something is built in this round
            (folder / "k.cu").write_text(SOURCE.replace("VALUE", "1" + " + 0" * (i + 1)))
        fault = chance.choice(FAULTS)
        fault(folder, chance)
        assert answer(folder)[0] == FOUR, (i, fault.__name__)
