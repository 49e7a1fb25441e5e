"""The process of an answer, which cannot harm the notebook: it is started, asked and ended here.

An answer may write anywhere, never end, or leave the GPU's context unusable. With the simulator on Linux, each check
runs in a fork of this process, which is ready in milliseconds. A process that uses CUDA cannot be forked, nor one in
which backward has started threads for the GPUs, and on macOS a fork is not safe: there a new process is started, and
kept for the next check as long as it is unharmed. With the process end all that it has started: see machine/guard.py.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import torch

from helpers.paths import environment
from helpers.practice import advice, answering
from helpers.practice.allowance import Allowance, only_child
from helpers.practice.messages import Channel, Malformed
from helpers.practice.printed import Printed
from kernel_xray.machine import guard
from kernel_xray.machine.toolchain import target

METHOD = "fork" if target == "simulator" and sys.platform.startswith("linux") else "spawn"
BUILD_SECONDS = 900.0  # nvcc, or the first build of the simulator, on a busy machine; a build takes seconds
REGISTRATION_SECONDS = 90.0  # it imports large parts of PyTorch
RUN_SECONDS = 20.0  # of processor time, for one call, which takes well under a second
CHECK_SECONDS = 1200.0  # for the whole check
TRUSTED = True  # the answer is the learner's own; a class's grader runs none without the tracer that leaves its tensors
OUTPUT_LINES = 40  # shown of what a kernel prints


def prepare(files: tuple[int, ...]) -> None:
    """Called in a fork before it serves; takes the files that the fork needs. A class's grader has its own."""


class Stopped(Exception):
    """The answer's process ended, or was too slow. `kind` is an Outcome's, and the message is for the learner.

    killed: by SIGKILL, which an answer cannot send: its memory was more than the machine had at that time, or more
        than it may have
    """

    def __init__(self, message: str, kind: str = "fault", killed: bool = False):
        super().__init__(message)
        self.kind, self.killed = kind, killed


@contextmanager
def process() -> Iterator[Process]:
    """A process for one answer. It ends with the block, unless `unharmed` is set and it can serve the next one."""
    idle, Process.idle = Process.idle, None
    found = idle if idle and idle.process.poll() is None else Process()
    found.begin()
    try:
        yield found
    finally:
        found.printed.end()
        if found.unharmed and not found.forked:
            Process.idle = found
        else:
            found.end()


def _backward_has_threads() -> bool:
    """Whether PyTorch has started threads for backward, as it does where it sees a GPU: a fork cannot run it then."""
    names = (path.read_text(encoding="utf-8", errors="replace") for path in Path("/proc/self/task").glob("*/comm"))
    with suppress(OSError):  # a thread has ended
        return any(name.startswith("pt_autograd") for name in names)
    return False


class Process:
    """The process that runs an answer, seen from that of the judge."""

    idle: Process | None = None

    def __init__(self) -> None:
        self.printed = Printed()
        self.forked = METHOD == "fork" and not _backward_has_threads()
        ours, theirs = socket.socketpair()
        self._channel, self._resources = Channel(ours), ExitStack()
        self._resources.callback(self.printed.close)
        self._resources.callback(self._channel.close)
        self.process: guard.Forked | subprocess.Popen
        self._answering: int | None = None
        with theirs:
            numbers = theirs.fileno(), self.printed.writing
            if self.forked:
                sys.stdout.flush()
                answering.flush_c_output()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: the fork uses none
                    self.process = self._resources.enter_context(guard.forked(lambda: self._serve(*numbers)))
            else:
                command = [sys.executable, "-m", answering.__name__, *map(str, numbers)]
                started = guard.started(command, sys.executable, env=environment(), pass_fds=numbers)
                self.process = self._resources.enter_context(started)

    def _serve(self, connection: int, printed: int) -> None:
        """Runs in the fork."""
        self._channel.close()  # the fork would otherwise keep its own connection open
        torch.set_num_threads(1)  # torch's threads do not exist in the fork
        prepare((connection, printed))
        answering.serve(os.dup(connection), printed)

    def begin(self) -> None:
        """Called before an answer: its time begins, and what it prints is kept."""
        self._end, self._case, self.unharmed = time.monotonic() + CHECK_SECONDS, "", False
        self.printed.begin()

    def tell(self, case: str) -> None:
        """The label of the case that is asked for from now on: messages of Stopped name it."""
        self._case = case

    def ask(self, header: dict, parts: Sequence[bytes] = ()) -> tuple[dict, memoryview]:
        """Sends a message and returns the reply. Raises Stopped and Malformed."""
        nonce = secrets.token_hex(8)  # a reply that was sent before the question is not one
        seconds = {"build": BUILD_SECONDS, "registration": REGISTRATION_SECONDS}.get(header["do"], RUN_SECONDS)
        self._answering = self._answering or only_child(self.process.pid)  # below the reaper
        allowance = Allowance(self._answering, seconds, self._end)
        try:
            self._channel.send({**header, "nonce": nonce}, parts, allowance.left)
            reply, body = self._channel.receive(allowance.left)
        except TimeoutError:
            raise Stopped(self._too_slow(allowance), "fault" if self._case else "not built") from None
        except (EOFError, ConnectionError):
            reason = _reason(self.process)
            self.printed.end()
            how = advice.on_end(reason, self._case, self.printed.text(OUTPUT_LINES).splitlines())
            message, kind = (f"{self._case}: {how}", "fault") if self._case else (how, "not built")
            raise Stopped(message, kind, killed=reason == signal.SIGKILL.name) from None
        if reply.get("nonce") != nonce:
            raise Malformed("it is not the reply to the last message")
        return reply, body

    def _too_slow(self, allowance: Allowance) -> str:
        if time.monotonic() >= self._end:
            return f"{self._case or 'the build'}: the check did not end within {CHECK_SECONDS:.0f} s"
        return f"{self._case}: it {allowance.in_words()}" if self._case else f"the build {allowance.in_words()}"

    def end(self) -> None:
        """Kills the process and all that it has started."""
        self._resources.close()


def _reason(process: guard.Forked | subprocess.Popen) -> str:
    try:
        code = process.wait(5)
    except subprocess.TimeoutExpired:
        return "it closed its connection"
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"
