"""machine/turns.py: at most so many at a time, also if one is killed; and no harm without a folder for locks."""

import os
import subprocess
import sys
import tempfile
import time

import pytest

from kernel_xray.machine import turns
from kernel_xray.machine.paths import PACKAGE

IN_TURN = """
import os, sys, time
from kernel_xray.machine import turns
with turns.turn("test", {places}):
    mine = os.path.join("inside", str(os.getpid()))
    open(mine, "w").close()
    print(len(os.listdir("inside")), flush=True)
    time.sleep({seconds})
    os.unlink(mine)
"""


@pytest.fixture
def start(tmp_path):
    """start(places, seconds): a process that takes a turn, prints how many are inside, and stays for a while."""
    (tmp_path / "inside").mkdir()
    started = []

    def begin(places, seconds):
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "TMPDIR": str(tmp_path)}
        command = [sys.executable, "-c", IN_TURN.format(places=places, seconds=seconds)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """This process's own turns are those of `start`."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize(
    ("places", "most"), [pytest.param(1, 1, marks=pytest.mark.slow), (2, 2), pytest.param(5, 5, marks=pytest.mark.slow)]
)
def test_at_most_so_many_are_inside(start, places, most):
    seconds = 3.0 if places == 5 else 0.1  # long enough for all five to meet
    crowd = [start(places, seconds) for _ in range(5)]
    assert max(int(process.communicate(timeout=120)[0]) for process in crowd) == most


def test_a_killed_process_gives_its_turn_back(start, here):
    holder = start(1, 600)
    assert holder.stdout.readline() == "1\n"
    waiting = start(1, 0)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1)
    holder.kill()
    assert waiting.wait(60) == 0
    with turns.turn("test", 1):
        pass


def test_a_turn_ends_though_a_fork_lives_on(start, here):
    with turns.turn("test", 1):
        child = os.fork()
        if not child:
            time.sleep(600)
    try:
        assert start(1, 0).wait(60) == 0
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_a_turn_inside_a_turn_is_the_same_one(start, here):
    with pytest.raises(ZeroDivisionError), turns.turn("test", 1), turns.turn("test", 1):
        1 / 0  # noqa: B018
    assert start(1, 0).wait(60) == 0


def test_without_a_folder_for_locks_nothing_waits(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with turns.turn("test", 1):
        pass
