"""Builds of extensions and programs: nothing remains of one that is ended, and a macro bomb ends with words."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

import helpers
from helpers.machine.paths import ROOT

SIMULATOR = helpers.target == "simulator"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="takes its census from /proc"),
    pytest.mark.skipif(not SIMULATOR, reason="the limits are chosen for the simulator's builds"),
]
BOMB = "#define M0 1,\n" + "\n".join(f"#define M{i + 1} {f'M{i} ' * 10}" for i in range(9)) + "\nint bomb[] = {M9};\n"
KERNEL = """
#include <torch/csrc/stable/library.h>
__global__ void nothing_kernel() {}
void nothing() { nothing_kernel<<<1, NUMBER>>>(); }
STABLE_TORCH_LIBRARY(NAME, m) { m.def("nothing() -> ()"); }
"""


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setenv("KERNEL_LADDER_BUILD_MEMORY", "0.8")  # a build of these kernels needs less than half of it


@pytest.mark.parametrize("kind", ["extension", "program"])
def test_a_macro_bomb_ends_with_words(small, tmp_path, kind):
    (tmp_path / "bomb.cu").write_text(BOMB + "int main() {}\n")
    with pytest.raises(helpers.BuildError, match=r"cc1plus used .* GB of memory, and the limit is 0\.8 GB"):
        helpers.load("bomb", tmp_path / "bomb.cu") if kind == "extension" else helpers.program(tmp_path / "bomb.cu")


def test_a_normal_build_stays_within_the_limits(small, tmp_path):
    (tmp_path / "kernel.cu").write_text(KERNEL.replace("NUMBER", "1").replace("NAME", "within_limits"))
    assert helpers.load("within_limits", tmp_path / "kernel.cu", is_python_module=False).nothing


LOADS = "import sys, helpers; print('begins', flush=True); helpers.load(*sys.argv[1:], is_python_module=False)"


def of_build(mark):
    """Processes with the mark in their environment, by name."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (place / "environ").read_bytes() and " Z " not in (place / "stat").read_text():
                found[int(place.name)] = (place / "comm").read_text().strip()
    return found


@pytest.mark.timeout(3000)  # minutes, on a busy machine half an hour
def test_nothing_remains_of_50_builds_that_are_ended_at_random(tmp_path):
    rng, caught = random.Random(0), 0
    for i in range(50):
        name, mark = f"ended_{i}", f"KERNEL_LADDER_TEST={uuid.uuid4().hex}"
        (tmp_path / f"{name}.cu").write_text(KERNEL.replace("NUMBER", f"{i + 1}").replace("NAME", name))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **dict([mark.split("=")])}
        command = [sys.executable, "-c", LOADS, name, str(tmp_path / f"{name}.cu")]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "start_new_session": True}
        with subprocess.Popen(command, env=environment, **quiet) as parent:
            parent.stdout.readline()
            while parent.poll() is None and not any(
                name in ("ninja", "c++") for name in of_build(mark.encode()).values()
            ):
                time.sleep(0.02)
            time.sleep(rng.random())
            caught += parent.poll() is None
            way = rng.choice(["parent", "interrupt", "terminate", "group", "compiler"])
            if way == "compiler":
                for pid, name in of_build(mark.encode()).items():
                    if name in ("cc1plus", "ninja", "c++", "as", "ld"):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
            elif parent.poll() is None:
                number = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM}.get(way, signal.SIGKILL)
                (os.killpg if way == "group" else os.kill)(parent.pid, number)
            parent.wait(120)
        end = time.monotonic() + 30
        while (left := of_build(mark.encode())) and time.monotonic() < end:
            time.sleep(0.02)
        assert left == {}, f"round {i}: {way}"
    assert caught > 25
