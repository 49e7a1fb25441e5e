"""Builds and runs an answer in a process of its own, so that it cannot harm the notebook.

An answer may write anywhere, never end, or leave the GPU's context unusable. With the simulator on Linux, each check
runs in a fork of this process, which is ready in milliseconds. A process that uses CUDA cannot be forked, and on macOS
a fork is not safe: there a new process is spawned, and kept for the next check as long as it is unharmed.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import warnings
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from helpers.machine.toolchain import target
from helpers.practice.case_inputs import counted
from helpers.practice.trial import Explanation, Outcome, build_and_run, flush_c_output

METHOD = "fork" if target == "simulator" and sys.platform.startswith("linux") else "spawn"
BUILD_SECONDS = 300.0  # nvcc on a busy machine; a build takes seconds
RUN_SECONDS = 20.0  # for one case, which takes well under a second
BLOCK_SECONDS = "5"  # the simulator ends a block after this time and names it
OUTPUT_LINES = 40  # shown of what a kernel prints


def run(name: str, source: Path) -> Outcome:
    """Builds `source` and checks it as an answer to exercise `name`. KeyboardInterrupt ends the check and passes on."""
    idle, _Worker.idle = _Worker.idle, None
    worker = idle if idle and idle.process.is_alive() else _Worker()
    keep = False
    try:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "printed"
            outcome = worker.check(name, source, log)
            unharmed = outcome.kind in ("accepted", "rejected", "not built")
            # Operators that a Python answer registers with PyTorch cannot be registered again in that process.
            keep = METHOD == "spawn" and unharmed and source.suffix != ".py"
            return replace(outcome, printed=_head(log))
    finally:
        if keep:
            _Worker.idle = worker
        else:
            worker.end()


class _Worker:
    """The checking process, seen from the notebook's process."""

    idle: _Worker | None = None

    def __init__(self):
        context = multiprocessing.get_context(METHOD)
        self.connection, theirs = context.Pipe()
        ours = self.connection if METHOD == "fork" else None
        self.process = context.Process(target=serve, args=(theirs, ours), daemon=True)
        sys.stdout.flush()
        flush_c_output()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: the fork uses none
            self.process.start()
        theirs.close()

    def check(self, name: str, source: Path, log: Path) -> Outcome:
        case = ""  # the one that is running; "" while the answer is being built
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
                    endless = f"{case}: it did not end within {RUN_SECONDS:.0f} s: does every loop end?"
                    return Outcome("fault", explained or endless)
                case = answer
        except (EOFError, ConnectionError):
            self.process.join(5)
            how = f"it ended the process ({_reason(self.process.exitcode)}): did it read or write far out of bounds?"
            return Outcome("fault", explained or (f"{case}: {how}" if case else how))

    def _receive(self, seconds: float):
        return self.connection.recv() if self.connection.poll(seconds) else None

    def end(self) -> None:
        """Kills the process and any compiler that it has started."""
        self.connection.close()
        if self.process.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
        self.process.join(5)


def serve(connection: Connection, parents_end: Connection | None) -> None:
    """Runs in the checking process: answers jobs (exercise, source, log) until its connection closes."""
    if parents_end is not None:  # in a fork, which would otherwise keep its own connection open
        parents_end.close()
        torch.set_num_threads(1)  # torch's threads do not exist in the fork
    with contextlib.suppress(PermissionError):
        os.setsid()  # an interrupt goes to the notebook, which kills this process and its children
    os.environ.setdefault("KERNEL_LADDER_BLOCK_SECONDS", BLOCK_SECONDS)
    faulthandler.disable()  # inherited from the notebook or pytest: here a crash becomes a verdict
    quiet = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            name, source, log = connection.recv()
            connection.send(build_and_run(connection.send, name, source, log))


def _reason(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return signal.Signals(-exit_code).name
    return f"exit status {exit_code}"


def _head(log: Path) -> str:
    """The first lines that kernels printed to `log`, or ""."""
    if not log.is_file():
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    if len(lines) > OUTPUT_LINES:
        lines[OUTPUT_LINES:] = [f"... and {counted(len(lines) - OUTPUT_LINES, 'more line')}"]
    return "\n".join(lines)
