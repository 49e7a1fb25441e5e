"""No process outlives its reason: builds, programs and forks end with what started them, and at their limits."""

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernel_xray.machine import cache, guard, reaper
from kernel_xray.machine.paths import PACKAGE

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="takes its census from /proc")
MARK = "KERNEL_XRAY_TEST"  # in the environment of all processes of a test, for the census


@pytest.fixture
def mark(monkeypatch):
    monkeypatch.setenv(MARK, mark := uuid.uuid4().hex)
    return mark


def census(mark):
    """The processes that were started with the mark in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment, state = (place / "environ").read_bytes(), (place / "stat").read_text().rpartition(")")[2]
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in environment and state.split()[0] != "Z":
            found.append(int(place.name))
    return found


def running(mark, enough, seconds=30):
    """How many processes of the test run, as soon as they are enough: the last ones may not have started yet, and one
    that calls exec shows no environment for a moment."""
    end = time.monotonic() + seconds
    while (count := len(census(mark))) < enough and time.monotonic() < end:
        time.sleep(0.01)
    return count


def left(mark, seconds=30):
    """The processes of the test that remain."""
    end = time.monotonic() + seconds
    while (found := census(mark)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def python(code, *arguments):
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


TREE = "sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & sleep 300' &) ; echo started; sleep 300"
GROWS = "x = []\nwhile True: x.append(bytearray(b'x') * 5_000_000)"

# ----------------------------------------------------------------------------------------------------------------------
# Builds


def test_compilers_run_and_their_results_come_back_in_order(mark):
    good, bad = guard.run_all([["sh", "-c", "echo one"], ["sh", "-c", "echo two >&2; exit 3"]], RuntimeError)
    assert (good.returncode, good.stdout, good.stderr) == (0, "one\n", "")
    assert (bad.returncode, bad.stdout, bad.stderr) == (3, "", "two\n")
    assert left(mark) == []


@pytest.mark.parametrize(
    ("limit", "value", "code", "said"),
    [
        ("MEMORY", "0.2", GROWS, r"python.* used 0\.\d+ GB of memory, and the limit is 0\.2 GB\..*BUILD_MEMORY sets"),
        pytest.param(
            "SECONDS",
            "0.5",
            "while True: pass",
            r"(used \d+ s of processor time, and the limit is 0\.5 s|it took \d+ s).*_SECONDS sets",
            marks=pytest.mark.slow,  # these two wait for their limits, which are counted as that of memory is
        ),
        pytest.param(
            "SECONDS",
            "0.1",
            "import time; time.sleep(300)",
            r"it took 1 s, 10 times the limit of processor time",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_build_over_a_limit_ends_with_the_limit_in_words(mark, monkeypatch, limit, value, code, said):
    monkeypatch.setenv(f"KERNEL_XRAY_BUILD_{limit}", value)
    with pytest.raises(ChildProcessError, match=f"the build was ended: .*{said}"):
        guard.run_all([["sleep", "300"], python(code)], ChildProcessError)
    assert left(mark) == []


def test_a_build_within_its_limits_is_left_alone(monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BUILD_MEMORY", "0.2")
    monkeypatch.setenv("KERNEL_XRAY_BUILD_SECONDS", "20")
    (done,) = guard.run_all([python("x = b'x' * 50_000_000; import time; time.sleep(0.5)")], RuntimeError)
    assert done.returncode == 0


def test_a_macro_that_expands_without_end_is_ended(mark, monkeypatch, tmp_path):
    levels = "\n".join(f"#define M{i + 1} M{i} M{i} M{i} M{i} M{i} M{i} M{i} M{i} M{i} M{i}" for i in range(9))
    (tmp_path / "bomb.cpp").write_text(f"#define M0 1,\n{levels}\nint bomb[] = {{M9}};\n")
    monkeypatch.setenv("KERNEL_XRAY_BUILD_MEMORY", "0.3")
    compiler = os.environ.get("CXX", "c++").split()
    with pytest.raises(RuntimeError, match=r"used 0\.\d+ GB of memory.*Does a macro or a template expand without end"):
        guard.run_all([[*compiler, "-fsyntax-only", str(tmp_path / "bomb.cpp")]], RuntimeError)
    assert left(mark) == []


def test_an_error_in_the_context_ends_the_builds_processes_and_passes_on(mark, tmp_path):
    def fail():
        with subprocess.Popen(["sh", "-c", TREE], cwd=tmp_path, stdout=subprocess.PIPE) as tree:
            tree.stdout.readline()
            with guard.build(tmp_path, RuntimeError):
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert left(mark) == []


def test_a_build_that_ends_by_itself_leaves_other_processes_alone(tmp_path):
    """A shell of the user's in the build's folder is left alone, and so are compilers of this process elsewhere."""
    environment = {name: value for name, value in os.environ.items() if name != reaper.VARIABLE}
    (tmp_path / "other").mkdir()
    with (
        subprocess.Popen(["sleep", "300"], cwd=tmp_path, env=environment) as shell,
        subprocess.Popen(["sleep", "300"], cwd=tmp_path / "other") as elsewhere,
    ):
        with pytest.raises(KeyError), guard.build(tmp_path, RuntimeError):
            raise KeyError
        assert (shell.poll(), elsewhere.poll()) == (None, None)
        shell.kill()
        elsewhere.kill()


@pytest.mark.slow  # waits for the limit; a build over it is above
def test_of_two_builds_in_threads_only_the_one_over_its_limit_ends(mark, monkeypatch, tmp_path):
    monkeypatch.setenv("KERNEL_XRAY_BUILD_MEMORY", "0.2")

    def build(name, code):
        (tmp_path / name).mkdir()
        with guard.build(tmp_path / name, MemoryError):
            subprocess.run(python(code), cwd=tmp_path / name, check=True)

    with ThreadPoolExecutor(max_workers=2) as pool:
        large, small = pool.submit(build, "large", GROWS), pool.submit(build, "small", "import time; time.sleep(3)")
    with pytest.raises(MemoryError, match="GB of memory"):
        large.result()
    small.result()  # ended by itself
    assert left(mark) == []


@pytest.mark.parametrize(("name", "value", "unit"), [("MEMORY", "much", "GB"), ("SECONDS", "-1", "seconds")])
def test_a_limit_that_is_not_a_number_is_refused(monkeypatch, name, value, unit):
    monkeypatch.setenv(f"KERNEL_XRAY_BUILD_{name}", value)
    with pytest.raises(ValueError, match=f"KERNEL_XRAY_BUILD_{name} is '{value}'; set it to a number of {unit}"):
        guard.run_all([["true"]], RuntimeError)


BUILDER = """
import subprocess, sys
from pathlib import Path
from kernel_xray.machine import cache, guard
with cache.locked(Path(sys.argv[1])), guard.build(sys.argv[1], RuntimeError):
    subprocess.run(["sh", "-c", "echo started; exec sleep 300"], cwd=sys.argv[1])
"""


def reaper_of(pid):
    (found,) = (child for child in reaper.descendants(pid) if "reaper" in Path(f"/proc/{child}/cmdline").read_text())
    return found


def is_locked(folder):
    with open(folder / cache.LOCK) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_killed_builders_lock_is_free_only_when_its_compilers_are_gone(mark, tmp_path):
    command = [sys.executable, "-c", BUILDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as builder:
        builder.stdout.readline()
        os.kill(slow := reaper_of(builder.pid), signal.SIGSTOP)
        builder.kill()
        builder.wait()
        state = is_locked(tmp_path), running(mark, 2)
        os.kill(slow, signal.SIGCONT)
        assert state == (True, 2)  # the reaper and the compiler remained
        with cache.locked(tmp_path):
            assert census(mark) == []


def test_a_lock_is_free_after_a_build_whoever_forked_meanwhile(tmp_path):
    with cache.locked(tmp_path):
        assert is_locked(tmp_path)
        inherited = os.dup(cache.held.get()[0])  # as a fork of this process has it
        with guard.build(tmp_path, RuntimeError):
            pass
    assert not is_locked(tmp_path) and cache.held.get() == ()
    os.close(inherited)


# ----------------------------------------------------------------------------------------------------------------------
# Programs and forks


@pytest.mark.parametrize(("script", "code"), [("exit 5", 5), ("kill -SEGV $$", -signal.SIGSEGV), ("kill -9 $$", -9)])
def test_a_program_ends_as_it_would_alone(mark, script, code):
    with guard.started(["sh", "-c", f"setsid sleep 300 & {script}"], "/bin/sh") as process:
        assert process.wait(60) == code
        assert left(mark, 0) == []


def test_a_program_ends_with_the_context_and_takes_all_descendants_along(mark):
    with guard.started(["sh", "-c", TREE], "/bin/sh", stdout=subprocess.PIPE) as process, process.stdout:
        assert process.stdout.readline() == b"started\n"
        assert running(mark, 6) >= 6
    assert left(mark, 0) == []


def test_processes_that_fork_on_and_on_end(mark):
    code = "import os, time\nfor i in range(60):\n  if os.fork(): os._exit(0)\n  os.setsid(); time.sleep(0.005)"
    with guard.started(python(code), sys.executable) as process:
        process.wait(60)
    assert left(mark, 0) == []


def test_a_fork_ends_with_the_context_and_takes_what_it_forked_along(tmp_path):
    pids = tmp_path / "pids"

    def fork_and_wait():
        if not os.fork():
            os.setsid()
        with pids.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(300)

    with guard.forked(fork_and_wait) as process:
        while not pids.exists() or pids.read_text().count("\n") < 2:
            time.sleep(0.01)
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.read_text().split())


def test_a_forks_exit_status_arrives():
    with guard.forked(lambda: os._exit(6)) as process:
        assert process.wait(60) == 6
    with guard.forked(lambda: os.kill(os.getpid(), signal.SIGUSR1)) as process:
        assert process.wait(60) == -signal.SIGUSR1
    with guard.forked(lambda: None) as process, pytest.raises(subprocess.TimeoutExpired):
        process.wait(-1)


# ----------------------------------------------------------------------------------------------------------------------
# A process that is ended at a random time

PARENT = f"""
import signal, subprocess, sys, threading, time
from kernel_xray.machine import guard
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs with interrupts ignored
folder, kind = sys.argv[1:]
tree = ["sh", "-c", {TREE!r}]
print("begins", flush=True)
if kind == "build":
    with guard.build(folder, RuntimeError):
        subprocess.run(tree, cwd=folder, check=True)
elif kind == "run_all":
    guard.run_all([tree] * 3, RuntimeError)
elif kind == "fork":
    with guard.forked(lambda: subprocess.run(tree)) as process:
        process.wait(300)
else:
    with guard.started(tree, "/bin/sh") as process:
        process.wait()
"""
KINDS = ("build", "run_all", "fork", "program")
WAYS = ("interrupt", "terminate", "kill", "kill the group", "kill a child")


def end_at_random(kind, way, rng, folder, mark):
    """Starts PARENT, ends it somehow between its first millisecond of work and its first second."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", PARENT, str(folder), kind]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": environment}
    with subprocess.Popen(command, start_new_session=True, **quiet) as parent:
        parent.stdout.readline()
        time.sleep(rng.random() ** 2)
        if way == "kill the group":
            os.killpg(parent.pid, signal.SIGKILL)
        elif way == "kill a child":
            others = [pid for pid in census(mark) if Path(f"/proc/{pid}/comm").read_text() in ("sh\n", "sleep\n")]
            for pid in rng.sample(others, min(1, len(others))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
            parent.send_signal(signal.SIGINT)
        else:
            number = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[way]
            parent.send_signal(number)
        parent.wait(60)


@pytest.mark.slow  # starts and kills for seconds; one way to end is in each test above
@pytest.mark.parametrize("count", [5, 60])
def test_no_process_remains_after_random_ends_of_its_parent(mark, tmp_path, count):
    rng = random.Random(count)
    for i in range(count):
        kind, way = KINDS[i % len(KINDS)], WAYS[i % len(WAYS)]
        end_at_random(kind, way, rng, tmp_path, mark)
        assert left(mark) == [], f"round {i}: {kind}, {way}"


def test_the_census_sees_what_remains(mark):
    """Without a reaper, the same processes outlive their parent."""
    with subprocess.Popen(["sh", "-c", TREE], stdout=subprocess.PIPE, start_new_session=True) as parent:
        parent.stdout.readline()
        parent.kill()
        parent.wait()
        remaining = left(mark, 0.2)
        assert remaining
        for pid in remaining:
            os.kill(pid, signal.SIGKILL)
