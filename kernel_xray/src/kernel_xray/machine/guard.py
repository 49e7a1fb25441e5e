"""Starts processes so that none outlives its reason: compilers, programs, and the process that runs an answer.

Whatever ends this process, be it SIGKILL, and whatever exception ends a wait, a reaper (reaper.py) then kills what was
started. On Linux it finds a build's processes by a variable in their environment and by their folder, and the
descendants of a program or of a fork by being their subreaper.
"""

import math
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kernel_xray.machine import cache, reaper

# Target -> GB and seconds of processor time for one process of a build. cicc and ptxas need more than g++.
LIMITS = {"simulator": (4.0, 300.0), "gpu": (16.0, 1800.0)}
_TOKEN = uuid.uuid4().hex  # in the environment of all processes that this one starts
os.environ[reaper.VARIABLE] = _TOKEN  # once: to change the environment while other threads read it is not safe


def _limits(target: str) -> tuple[float, float]:
    """GB and seconds, from the environment or LIMITS. Raises ValueError."""
    chosen = []
    for name, default in zip(("MEMORY", "SECONDS"), LIMITS[target], strict=True):
        given = os.environ.get(variable := f"{reaper.VARIABLE}_{name}")
        try:
            number = float(given) if given else default
        except ValueError:
            number = math.nan
        if not number > 0:
            unit = "GB" if name == "MEMORY" else "seconds"
            raise ValueError(f"{variable} is {given!r}; set it to a number of {unit}, or to inf")
        chosen.append(number)
    return chosen[0], chosen[1]


@contextmanager
def build(
    folder: Path | str, failure: Callable[[str], Exception], target: str = "simulator", token: str = ""
) -> Iterator[None]:
    """Watches the compilers that are started inside the context with `folder` as their working folder.

    If an exception leaves the context, or this process ends, they are killed, with their children. So they are if one
    of them exceeds a limit; an exception of the context then becomes `failure(message)`. Only one build at a time may
    use the folder: the locks of the build cache that this thread holds are not free before the compilers are gone.

    token: watches the processes with this value of KERNEL_XRAY_BUILD instead, in whatever folder
    """
    memory, seconds = _limits(target)
    where = "" if token else os.path.realpath(folder)
    arguments = [str(memory * reaper.GB), str(seconds), token or _TOKEN, where]
    quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with _reaped("watch", arguments, stdout=subprocess.PIPE, pass_fds=cache.held.get(), **quiet) as (process, lifeline):
        assert process.stdout is not None
        try:
            yield
            with suppress(BrokenPipeError):
                lifeline.write(b".")  # the build has ended: nothing is left to kill
        except BaseException as error:
            lifeline.close()
            reason = process.stdout.read().decode().strip()
            if reason and isinstance(error, Exception):
                raise failure(_in_words(reason)) from None
            raise
        finally:
            process.stdout.close()


def _in_words(reason: str) -> str:
    variable = f"{reaper.VARIABLE}_{'MEMORY' if 'memory' in reason else 'SECONDS'}"
    return (
        f"the build was ended: {reason}. Does a macro or a template expand without end? {variable} sets another limit"
    )


def run_all(
    commands: list[list[str]], failure: Callable[[str], Exception], target: str = "simulator"
) -> list[subprocess.CompletedProcess]:
    """Runs compilers, as many at a time as there are cores, under the limits of `build`; their output is text.

    An exception, such as KeyboardInterrupt, kills those that run. If they exceed a limit, raises `failure(message)`.
    """
    token, done = uuid.uuid4().hex, []
    starting, stopped = threading.Lock(), threading.Event()
    pool = ThreadPoolExecutor(os.cpu_count())

    def run(command: list[str]) -> subprocess.CompletedProcess:
        environment = {**os.environ, reaper.VARIABLE: token}
        with starting:
            if stopped.is_set():
                raise InterruptedError
            process = subprocess.Popen(command, env=environment, **_CAPTURED)
        with process:
            output, errors = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    try:
        with build("", failure, target, token):
            try:
                done = [waiting.result() for waiting in [pool.submit(run, command) for command in commands]]
                if any(process.returncode for process in done):
                    raise _Failed  # by itself, or ended at a limit
            except BaseException:
                with starting:  # from here on, none is started
                    stopped.set()
                raise
    except _Failed:
        pass
    finally:
        pool.shutdown(cancel_futures=True)
    return done


_CAPTURED: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
    "errors": "replace",
}


# Imported, not run as a script, so that Python need not compile it again each time.
_START = "import sys; sys.path.append(sys.argv[1]); import reaper; reaper.main(*sys.argv[2:])"


class _Failed(Exception):
    """A compiler reported an error, or was killed."""


@contextmanager
def started(command: list[str], executable: Path | str, **options: Any) -> Iterator[subprocess.Popen]:
    """Starts `executable` with the arguments `command`, the first being its name for itself, in a session of its own.

    At the end of the context, or of this process, it is killed, with all of its descendants; and so are those that it
    leaves behind when it ends. `options` are Popen's.
    """
    with _reaped("run", [str(executable), *command], **options) as (process, _):
        yield process


@contextmanager
def _reaped(mode: str, arguments: list[str], **options: Any) -> Iterator[tuple[subprocess.Popen, IO[bytes]]]:
    """Starts a reaper. Yields it, and the lifeline: closed, it makes the reaper kill what is in its care."""
    reading, writing = os.pipe()
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        _START,
        os.path.dirname(reaper.__file__),
        mode,
        str(reading),
        *arguments,
    ]
    passed = [reading, *options.pop("pass_fds", ())]
    with open(writing, "wb", buffering=0) as lifeline:
        try:
            process = subprocess.Popen(command, pass_fds=passed, start_new_session=True, **options)
        finally:
            os.close(reading)
        try:
            yield process, lifeline
        finally:
            lifeline.close()
            process.wait()


class Forked:
    """A fork of this process, as subprocess.Popen shows a process."""

    def __init__(self, pid: int):
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, or minus the number of the signal that ended it; None while it runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout: float = math.inf) -> int:
        """What `poll` returns at its end. Raises subprocess.TimeoutExpired."""
        last = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > last:
                raise subprocess.TimeoutExpired("fork", timeout)
            time.sleep(0.002)
        return code


@contextmanager
def forked(function: Callable[[], object]) -> Iterator[Forked]:
    """Calls `function` in a fork of this process, in a session of its own.

    It ends as a process of `started` does. The fork has this process's memory, but not its threads.
    """
    reading, writing = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # an interrupt must not raise in the child
    try:
        pid = os.fork()
        if not pid:
            try:
                os.close(writing)
                os.setsid()
                for number in _INTERRUPTS:
                    signal.signal(number, signal.SIG_IGN)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                reaper.supervise(function, reading)
            finally:
                os._exit(1)
    finally:
        os.close(reading)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    process = Forked(pid)
    try:
        yield process
    finally:
        os.close(writing)
        process.wait()


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
