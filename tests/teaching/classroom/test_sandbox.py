"""What a confined process cannot do, each beside a process that is not confined and can."""

import ctypes
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import torch

from helpers.paths import KERNELS, NOTEBOOKS, ROOT, TESTS
from helpers.teaching.classroom import grading, landlock, removal, sandbox, system_calls, watch
from helpers.teaching.classroom.watch import Watch
from kernel_xray.machine import cache, guard

pytestmark = pytest.mark.skipif(bool(sandbox.problem()), reason=f"this machine cannot confine: {sandbox.problem()}")


@pytest.fixture
def own():
    """A folder like the one of an answer."""
    folder = Path(tempfile.mkdtemp(prefix="answer_"))
    yield folder
    shutil.rmtree(folder)


def succeeds(attempt, prepare=lambda: None):
    """Whether `attempt` returns without an exception, and not False, in a fork after `prepare`, which must return."""

    def run():
        try:
            prepare()
        except BaseException:
            os._exit(2)
        if attempt() is False:
            raise PermissionError

    status = sandbox._in_a_fork(run)
    assert status in (0, 1, -signal.SIGXFSZ)
    return status == 0


def libc(name, *arguments):
    """Calls a function of the C library; False if it fails."""
    return getattr(ctypes.CDLL(None), name)(*arguments) != -1


def fork():
    pid = os.fork()
    if not pid:
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def kill_the_grader():
    os.kill(os.getppid(), 0)


def trace_the_grader():
    """PTRACE_SEIZE and detach."""
    return libc("ptrace", 0x4206, os.getppid(), 0, 0)


def run_own_program(folder):
    program = folder / "program"
    shutil.copy("/bin/true", program)
    return subprocess.run([program]).returncode == 0


def mount(folder):
    """In a namespace of its own: the mount must not stay."""
    private = 1 << 18 | 1 << 14
    flags = (None, b"/", None, private, None)
    return libc("unshare", 0x20000) and libc("mount", *flags) and libc("mount", b"x", bytes(folder), b"tmpfs", 0, None)


def through_a_link(folder, outside):
    (folder / "link").symlink_to(outside)
    (folder / "link" / "written").write_text("x")


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "gradebook.json").write_text("{}")
    return tmp_path


ATTEMPTS = {
    "read a solution": lambda own, out: (KERNELS / "solutions" / "roll.cu").read_text(),
    "list the solutions": lambda own, out: os.listdir(KERNELS / "solutions"),
    "read the tests": lambda own, out: (TESTS / "practice" / "wrong_answers" / "lesson_01.toml").read_text(),
    "list the notebooks": lambda own, out: os.listdir(NOTEBOOKS),
    "read the sources' page": lambda own, out: (ROOT / "docs" / "architecture.md").read_text(),
    "read the gradebook": lambda own, out: (out / "gradebook.json").read_text(),
    "write the gradebook": lambda own, out: (out / "gradebook.json").write_text("{}"),
    "truncate the gradebook": lambda own, out: os.truncate(out / "gradebook.json", 0),
    "delete the gradebook": lambda own, out: (out / "gradebook.json").unlink(),
    "write outside": lambda own, out: (out / "new").write_text("x"),
    "make a folder outside": lambda own, out: (out / "new").mkdir(),
    "write through a link": lambda own, out: through_a_link(own, out),
    "link a file from outside": lambda own, out: os.link(out / "gradebook.json", own / "gradebook.json"),
    "move a file from outside": lambda own, out: os.rename(out / "gradebook.json", own / "gradebook.json"),
    "list the folders of others": lambda own, out: os.listdir(own.parent),
    "read the users": lambda own, out: Path("/etc/passwd").read_text(),
    "write to the package": lambda own, out: (Path(landlock.__file__).parent / "new.py").touch(),
    "use the internet": lambda own, out: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "use a UNIX socket": lambda own, out: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    "signal the grader": lambda own, out: kill_the_grader(),
    "trace the grader": lambda own, out: trace_the_grader(),
    "read the grader's environment": lambda own, out: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "read the grader's memory": lambda own, out: open(f"/proc/{os.getppid()}/mem", "rb").close(),
    "open the grader's files": lambda own, out: open(f"/proc/{os.getppid()}/fd/0").close(),
    "find a secret in the environment": lambda own, out: os.environ["CLASSROOM_TOKEN"],
    "hide memory": lambda own, out: os.close(os.memfd_create("x")),
    "run a program of its own": lambda own, out: run_own_program(own),
    "make a namespace": lambda own, out: libc("unshare", 0x10000000),
    "mount": lambda own, out: mount(own),
    "change the host's name": lambda own, out: libc("sethostname", NAME, len(NAME)),
    "raise a limit of its own": lambda own, out: (own / "huge").write_bytes(bytes(sandbox.FILE_BYTES + 1)),
}  # fmt: skip
NAME = socket.gethostname().encode()
AS_ROOT = {"mount", "change the host's name"}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_fails_only_in_a_confined_process(own, outside, monkeypatch, name):
    monkeypatch.setenv("CLASSROOM_TOKEN", "secret")
    attempt = ATTEMPTS[name]
    assert not succeeds(lambda: attempt(own, outside), lambda: sandbox.enter(own, ()))
    assert (outside / "gradebook.json").read_text() == "{}"
    assert [path.name for path in outside.iterdir()] == ["gradebook.json"]
    shutil.rmtree(own)
    own.mkdir()
    if name not in AS_ROOT or os.geteuid() == 0:
        assert succeeds(lambda: attempt(own, outside)), "without the sandbox, it must succeed"
    (Path(landlock.__file__).parent / "new.py").unlink(missing_ok=True)


def test_what_a_build_and_a_run_need_still_works(own):
    def work():
        (own / "x.cpp").write_text("#include <vector>\nint main() { return std::vector<int>(3).size() - 3; }")
        subprocess.run(["c++", "-c", "x.cpp", "-o", "x.o"], check=True)
        assert torch.ones(3).sum() == 3
        assert fork()
        assert importlib.import_module("helpers.ladder.checking.hints") and importlib.import_module("sqlite3")
        assert Path(tempfile.gettempdir()) == own == Path.cwd()

    assert succeeds(work, lambda: sandbox.enter(own, ()))


def test_only_the_given_files_stay_open(own, outside):
    reading, writing = os.pipe()
    with open(outside / "gradebook.json", "w") as gradebook:
        number = gradebook.fileno()
        assert not succeeds(lambda: os.write(number, b"x"), lambda: sandbox.enter(own, (writing,)))
        shutil.rmtree(own / "cache")
        assert succeeds(lambda: os.write(writing, b"x"), lambda: sandbox.enter(own, (writing,)))
    assert os.read(reading, 1) == b"x"
    os.close(reading)
    os.close(writing)


def test_given_files_can_be_read_but_not_written(own, outside):
    book = outside / "gradebook.json"
    assert succeeds(book.read_text, lambda: sandbox.enter(own, (), [book]))
    shutil.rmtree(own / "cache")
    assert not succeeds(lambda: book.write_text(""), lambda: sandbox.enter(own, (), [book]))


def test_without_forks_a_process_has_threads_and_programs_but_no_forks():
    def threads_and_programs():
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        return subprocess.run(["true"]).returncode == 0

    assert succeeds(threads_and_programs, system_calls.give_up_forks)
    assert not succeeds(fork, system_calls.give_up_forks)
    assert succeeds(fork)


@pytest.mark.parametrize(
    ("does", "memory", "said"),
    [
        ("x = bytes(300_000_000); b = bytearray(x); time.sleep(60)", 0.2, "it used more than 0.2 GB of memory"),
        (
            "import mmap; m = mmap.mmap(-1, 300_000_000); m.write(bytes(300_000_000)); time.sleep(60)",
            0.25,
            "it used more than 0.25 GB of memory",
        ),
        (
            "open('f', 'wb').write(bytes(250_000_000)); import mmap; f = open('f'); m = mmap.mmap(f.fileno(), 0, "
            "prot=mmap.PROT_READ); sum(m[i] for i in range(0, 250_000_000, 4096)); time.sleep(1)",
            0.4,
            "",
        ),
        pytest.param(  # ends by itself after seconds, as the one above does
            "[open(f'{i}', 'wb').truncate(0) for i in range(9)]; time.sleep(2)", 6.0, "", marks=pytest.mark.slow
        ),
        (
            "[_thread.start_new_thread(time.sleep, (60,)) for _ in range(1001)]; time.sleep(60)",
            6.0,
            "it started more than 1,000 threads",
        ),
        ("[os.fork() for _ in range(8)]; time.sleep(60)", 6.0, "it started more than 200 processes"),
    ],
)
def test_the_watch_ends_what_uses_too_much(tmp_path, does, memory, said):
    code = f"import _thread, os, time; os.chdir({str(tmp_path)!r}); {does}"
    with guard.started([sys.executable, "-I", "-S", "-c", code], sys.executable) as process:
        with Watch(tmp_path, memory) as watching:
            process.wait(50)
        assert watching.reason == said
        assert process.returncode == (-signal.SIGKILL if said else 0)


def test_the_watch_counts_files(tmp_path, monkeypatch):
    monkeypatch.setattr("helpers.teaching.classroom.watch.DISK", 0.001)
    with Watch(tmp_path) as watching:
        (tmp_path / "large").write_bytes(bytes(2_000_000))
        end = time.monotonic() + 20
        while not watching.reason and time.monotonic() < end:
            time.sleep(0.05)
    assert watching.reason == "it wrote more than 0.001 GB of files"


def nested(folder, depth):
    """Makes folders in folders, deeper than a path can name."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("n", dir_fd=here)
        inside = os.open("n", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
    os.close(here)


def test_the_watch_counts_files_and_depth(tmp_path, monkeypatch):
    assert watch._written(tmp_path) == ""
    monkeypatch.setattr(watch, "FILES", 3)
    for name in "abcd":
        (tmp_path / name).symlink_to("/dev/zero")
    assert watch._written(tmp_path) == "it made more than 3 files"
    monkeypatch.undo()
    nested(tmp_path, 2500)
    assert watch._written(tmp_path) == "it made folders in folders, deeper than a path can name"
    removal.remove(tmp_path)


def test_the_watch_counts_the_judges_own_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "JUDGE", 0.001)
    assert "its messages fill" in Watch(tmp_path)._exceeded()


def test_what_an_answer_leaves_is_deleted_whatever_it_is(tmp_path):
    """Folders in one another, deeper than a path may be long, pipes, links, and folders that may not be read."""
    outside, folder = tmp_path / "outside", tmp_path / "answer"
    outside.mkdir()
    folder.mkdir()
    (outside / "kept").write_text("x")
    nested(folder, 2500)
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(outside)
    (folder / "shut").mkdir()
    (folder / "shut" / "file").write_text("x")
    (folder / "shut" / "link").symlink_to(outside)
    os.chmod(folder / "shut", 0)
    os.chmod(folder, 0)
    removal.remove(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").read_text() == "x"
    removal.remove(folder)  # it is gone


# -- the worker --------------------------------------------------------------------------------------------------------

WORKER_CANNOT = {
    "read a submission": lambda own, out: (out / "gradebook.json").read_text(),
    "write the gradebook": lambda own, out: (out / "gradebook.json").write_text(""),
    "write outside": lambda own, out: (out / "new").write_text("x"),
    "list the folders of others": lambda own, out: os.listdir(own.parent),
    "read the users": lambda own, out: Path("/etc/passwd").read_text(),
    "read the notebooks": lambda own, out: os.listdir(NOTEBOOKS),
    "write to the course": lambda own, out: (KERNELS / "solutions" / "new.cu").touch(),
    "signal the grader": lambda own, out: kill_the_grader(),
}


@pytest.mark.parametrize("name", WORKER_CANNOT)
def test_the_worker_reaches_the_course_and_its_own_folder_alone(own, outside, name):
    attempt = WORKER_CANNOT[name]
    assert not succeeds(lambda: attempt(own, outside), lambda: sandbox.enter_worker(own))
    assert [path.name for path in outside.iterdir()] == ["gradebook.json"]
    assert succeeds(lambda: attempt(own, outside)), "without the sandbox, it must succeed"
    (KERNELS / "solutions" / "new.cu").unlink(missing_ok=True)


def test_the_worker_still_judges_and_confines_answers(own, outside):
    def work():
        (KERNELS / "solutions" / "roll.cu").read_text()
        (own / "answer").mkdir()
        (cache.root() / "worker").write_text("x")
        (cache.root() / "worker").unlink()
        return not succeeds((own / "outside").touch, lambda: sandbox.enter(own / "answer", ()))

    assert succeeds(work, lambda: sandbox.enter_worker(own))


def test_a_worker_has_only_the_variables_that_it_needs():
    given = {
        "CLASSROOM_TOKEN": "x",
        "PATH": "/bin",
        "KERNEL_LADDER_TARGET": "simulator",
        "HOME": "/h",
        "AWS_SECRET": "",
    }
    assert sorted(sandbox.needed(given)) == ["KERNEL_LADDER_TARGET", "PATH"]
    assert sorted(sandbox.needed(given, grading._ENVIRONMENT)) == ["HOME", "KERNEL_LADDER_TARGET", "PATH"]
