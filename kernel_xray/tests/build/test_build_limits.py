"""Builds of extensions and programs: nothing remains of one that is ended, and a macro bomb ends with words."""

import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter

import pytest
from fault_rounds import Loads, write_kernel

import kernel_xray

SIMULATOR = kernel_xray.target == "simulator"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="takes its census from /proc"),
    pytest.mark.skipif(not SIMULATOR, reason="the limits are chosen for the simulator's builds"),
]
BOMB = "#define M0 1,\n" + "\n".join(f"#define M{i + 1} {f'M{i} ' * 10}" for i in range(9)) + "\nint bomb[] = {M9};\n"
KERNEL = """
#include <torch/csrc/stable/library.h>
__global__ void nothing_kernel() {}
void nothing() { nothing_kernel<<<1, 1>>>(); }
STABLE_TORCH_LIBRARY(within_limits, m) { m.def("nothing() -> ()"); }
"""


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BUILD_MEMORY", "0.8")  # a build of these kernels needs less than half of it


@pytest.mark.parametrize("kind", ["extension", "program"])
def test_a_macro_bomb_ends_with_words(small, tmp_path, kind):
    (tmp_path / "bomb.cu").write_text(BOMB + "int main() {}\n")
    with pytest.raises(
        kernel_xray.BuildError, match=r"(cc1plus|clang\+\+) used .* GB of memory, and the limit is 0\.8 GB"
    ):
        kernel_xray.load("bomb", tmp_path / "bomb.cu") if kind == "extension" else kernel_xray.program(
            tmp_path / "bomb.cu"
        )


def test_a_normal_build_stays_within_the_limits(small, tmp_path):
    (tmp_path / "kernel.cu").write_text(KERNEL)
    assert kernel_xray.load("within_limits", tmp_path / "kernel.cu", is_python_module=False).nothing


WHOLE = 2  # builds that end by themselves; the second shows how long one takes
WAYS = {
    "interrupt": {"number": signal.SIGINT},
    "terminate": {"number": signal.SIGTERM},
    "kill": {},
    "kill the group": {"group": True},
    "kill the compilers": None,
}


def compilers(loads):
    return [pid for pid, name in loads.parts().items() if name in ("ninja", "c++", "cc1plus", "as", "ld")]


@pytest.mark.timeout(3000)
def test_nothing_remains_of_50_builds_that_are_ended_at_random(tmp_path):
    rng, caught, happened, seconds, way = random.Random(0), 0, Counter(), 1.0, "none"
    with Loads(tmp_path, {}) as loads:
        for i in range(WHOLE + 50):
            assert loads.parts() == {}
            load = loads.start(write_kernel(tmp_path, i, 0))
            while not compilers(loads):
                time.sleep(0.01)
            began = time.monotonic()
            if i >= WHOLE:
                time.sleep(rng.uniform(0, 0.8 * seconds))
                caught += bool(loads.parts())
                happened.update([way := rng.choice(sorted(WAYS))])
                if (options := WAYS[way]) is not None:
                    load.kill(**options)
                for pid in compilers(loads) if options is None else []:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            code, _ = load.end(120)
            assert code is not None
            seconds = seconds if i >= WHOLE else time.monotonic() - began
            end = time.monotonic() + 30
            while (left := loads.parts()) and time.monotonic() < end:
                time.sleep(0.01)
            assert left == {}, f"round {i}: {way}"
    assert caught > 10  # nearly all
    print(f"50 builds ended, {caught} while a compiler ran, none left a process;", *sorted(happened.items()))
