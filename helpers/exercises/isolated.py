"""Builds and runs an answer in a process of its own, so that nothing it does can hurt the notebook.

An answer may write anywhere, never end, or leave a GPU's context unusable. In the simulator on Linux each check gets a
fork of this process, which is ready in milliseconds. A process that uses CUDA cannot be forked, and on macOS forks are
not safe: there a fresh process is started, which stays for the next check as long as it is unharmed.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from helpers.toolchain import device, target

METHOD = "fork" if target == "simulator" and sys.platform.startswith("linux") else "spawn"
BUILD_SECONDS = 300.0  # nvcc on a busy machine; a build takes seconds
RUN_SECONDS = 20.0  # for one case; it takes well under a second
BLOCK_SECONDS = "5"  # the simulator itself ends a block after this, and names it
OUTPUT_LINES = 40  # of what a kernel prints


@dataclass(frozen=True)
class Outcome:
    """What became of an answer: "accepted", "rejected", "not built" or "fault"; why; what it printed."""

    kind: str
    message: str
    printed: str = ""


class Explanation(str):
    """What the traced mode says of a fault."""


def run(name: str, source: Path) -> Outcome:
    """Builds `source` and checks it as an answer to exercise `name`. KeyboardInterrupt ends the check and is raised."""
    idle, _Worker.idle = _Worker.idle, None
    worker = idle if idle and idle.process.is_alive() else _Worker()
    keep = False
    try:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "printed"
            outcome = worker.check(name, source, log)
            keep = METHOD == "spawn" and outcome.kind in ("accepted", "rejected", "not built")
            return Outcome(outcome.kind, outcome.message, _head(log))
    finally:
        if keep:
            _Worker.idle = worker
        else:
            worker.end()


class _Worker:
    """The process that checks, seen from the notebook's."""

    idle: _Worker | None = None

    def __init__(self):
        context = multiprocessing.get_context(METHOD)
        self.connection, theirs = context.Pipe()
        ours = self.connection if METHOD == "fork" else None
        self.process = context.Process(target=serve, args=(theirs, ours), daemon=True)
        sys.stdout.flush()
        _flush_c_output()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: none of them is used there
            self.process.start()
        theirs.close()

    def check(self, name: str, source: Path, log: Path) -> Outcome:
        case = ""  # the one that is being run; none while the answer is being built
        explained: Explanation | None = None
        try:
            self.connection.send((name, str(source), str(log)))
            while True:
                answer = self._receive(RUN_SECONDS if case else BUILD_SECONDS)
                if isinstance(answer, Outcome):
                    return answer
                if isinstance(answer, Explanation):
                    explained = answer
                    continue
                if answer is None and not case:
                    return Outcome("not built", f"the build did not end within {BUILD_SECONDS:.0f} s")
                if answer is None:
                    return Outcome(
                        "fault", explained or f"{case}: no end within {RUN_SECONDS:.0f} s: does every loop end?"
                    )
                case = answer
        except (EOFError, ConnectionError):
            self.process.join(5)
            how = f"it ended the process ({_reason(self.process.exitcode)}): a read or a write far outside?"
            return Outcome("fault", explained or (f"{case}: {how}" if case else how))

    def _receive(self, seconds: float):
        return self.connection.recv() if self.connection.poll(seconds) else None

    def end(self) -> None:
        """Ends the process, and the compiler that it may have started."""
        self.connection.close()
        if self.process.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
        self.process.join(5)


def serve(connection: Connection, parents_end: Connection | None) -> None:
    """The process that checks: answers jobs (exercise, source, log) until its connection closes."""
    if parents_end is not None:  # of a fork: else this process would keep its own connection open
        parents_end.close()
        torch.set_num_threads(1)  # the threads that torch has started are not in the fork
    with contextlib.suppress(PermissionError):
        os.setsid()  # an interrupt is for the notebook, which ends this process and its children
    os.environ.setdefault("KERNEL_LADDER_BLOCK_SECONDS", BLOCK_SECONDS)
    faulthandler.disable()  # of the notebook or of pytest: a crash is reported as a verdict
    quiet = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            name, source, log = connection.recv()
            connection.send(_build_and_run(connection, name, source, log))


def _build_and_run(connection: Connection, name: str, source: str, log: str) -> Outcome:
    from helpers.compile_errors import BuildError

    from .cases import Rejected, plain, run_cases
    from .checks import CHECKS
    from .traced import Explained, Seen, run_small_cases

    try:
        namespace, traced = _load_both(name, source)
    except BuildError as error:
        return Outcome("not built", str(error).partition("; the exception's `output`")[0])
    except Exception as error:  # no fault of the answer: no compiler, no space left, ...
        return Outcome("not built", f"the build itself failed: {type(error).__name__}: {plain(error)}")
    function = getattr(namespace, name, None)
    if function is None:
        return Outcome("not built", f"it registers no function {name}: keep the lines with STABLE_TORCH_LIBRARY")
    explained, seen = "", Seen()
    if traced is not None:
        try:
            seen = run_small_cases(getattr(traced, name), CHECKS[name], connection.send)
        except Explained as error:
            explained = str(error)
            if error.endless:
                return Outcome("fault", explained)
            connection.send(Explanation(explained))  # known, should the run below end this process
        except Exception:  # a refusal, say: the run below meets it again, and says which case it was
            seen = Seen()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    try:
        labels = run_cases(function, CHECKS[name], device, connection.send)
        if explained:
            return Outcome("fault", explained)
        if seen.demand:
            return Outcome("rejected", seen.demand)
        return Outcome("accepted", _paragraphs(f"{len(labels)} cases, the last: {labels[-1]}", seen.wasted))
    except Rejected as error:
        return Outcome("rejected", _paragraphs(explained, str(error)))
    except Exception as error:  # whatever an answer raises is for the learner to read
        return Outcome("fault", explained or plain(error))
    finally:
        _flush_c_output()


def _paragraphs(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


def _load_both(name: str, source: str):
    """The answer's functions for this machine, and in the traced mode. Raises BuildError.

    In the simulator one build is both: outside of an X-ray its functions run as ever. On a GPU there are two builds, at
    the same time, and the second may be None: what the simulator does not know can still be right there.
    """
    from helpers.compile_errors import BuildError
    from helpers.loader import load

    if target == "simulator":
        traced = load(name, [source], is_python_module=False, traced=True)
        return traced.untraced, traced
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(load, f"{name}_traced", [source], is_python_module=False, traced=True)
        namespace = load(name, [source], is_python_module=False)
        try:
            return namespace, waiting.result()
        except BuildError:
            return namespace, None


def _flush_c_output() -> None:
    """Writes out what printf has buffered."""
    ctypes.CDLL(None).fflush(None)


def _reason(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return signal.Signals(-exit_code).name
    return f"exit status {exit_code}"


def _head(log: Path) -> str:
    """The first lines of what was printed, if anything."""
    if not log.is_file():
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    more = [f"... and {len(lines) - OUTPUT_LINES:,} lines more"] if len(lines) > OUTPUT_LINES else []
    return "\n".join(lines[:OUTPUT_LINES] + more)
