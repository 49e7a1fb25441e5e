"""What `bench --first-start` measures: the memory of a tree of processes, the sizes of folders. The record is whole."""

import json
import sys

import pytest

from helpers.paths import RESULTS
from helpers.upkeep.benchmarks import first_start

HOLDS = "x = bytearray(80_000_000); x[::4096] = b'1' * len(x[::4096]); import time; time.sleep(1.5)"
STARTS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDS!r}])"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


@pytest.mark.slow  # a benchmark of our own tools
@LINUX
@pytest.mark.parametrize(("program", "low", "high"), [(STARTS, 80, 160), ("import time; time.sleep(1)", 1, 60)])
def test_the_memory_of_children_counts(program, low, high):
    seconds, peak = first_start._run([sys.executable, "-c", program], RESULTS, {})
    assert low <= peak <= high
    assert seconds >= 1


def test_a_step_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match="no such thing"):
        first_start._run([sys.executable, "-c", "raise SystemExit('no such thing')"], RESULTS, {})


def test_sizes_are_those_of_files(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("a", "inner/b"):
        (tmp_path / name).write_bytes(bytes(2_000_000))
    (tmp_path / "link").symlink_to("a")
    assert first_start._megabytes(tmp_path) == 4


def test_binder_s_limits_hold():
    """An image of at most 1.5 GB for the environment, and 2 GB of memory, beyond which Binder restarts a kernel."""
    found = json.loads((RESULTS / "first_start.json").read_text(encoding="utf-8"))
    assert 500 < found["environment"]["installed_mb"] <= 1500
    assert found["environment"]["download_mb"] < found["environment"]["installed_mb"]
    assert found["lessons"]
    assert all(each["peak_mb"] <= 2000 for each in found["lessons"])
    assert len(found["machine"]["commit"]) >= 40
