"""Runs a command with all that it starts: its output up to a limit, its time up to a limit."""

import contextlib
import os
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kernel_xray.machine import guard

OUTPUT_BYTES = 10_000_000  # kept of standard output, and of standard error
_DRAIN_SECONDS = 1.0  # for output of a process that has left the group and outlives it


@dataclass(frozen=True)
class Ended:
    """How a process ended: what it wrote, its exit status or minus the signal's number, and whether time ran out."""

    stdout: bytes
    stderr: bytes
    code: int
    out_of_time: bool
    dropped: int  # bytes of output beyond the limit


def run(
    command: list[str],
    *,
    executable: Path,
    cwd: Path,
    env: dict[str, str],
    stdin: bytes | None,
    timeout: float | None,
    capture: bool,
) -> Ended:
    """Runs `executable` with the arguments `command`, of which the first is its name for itself, and waits for its end.

    It is killed after `timeout` seconds, if an exception, such as KeyboardInterrupt, ends the wait, and with this
    process; its descendants are killed when it has ended. Without `capture` the process shares this process's standard
    streams, except for a given `stdin`.
    """
    pipe = subprocess.PIPE if capture else None
    source = subprocess.PIPE if stdin is not None else subprocess.DEVNULL if capture else None
    streams = {"stdin": source, "stdout": pipe, "stderr": pipe}
    out_of_time = False
    with guard.started(command, executable, cwd=cwd, env=env, **streams) as process:
        readers = [_Reader(stream) for stream in (process.stdout, process.stderr) if stream]
        if process.stdin and stdin is not None:
            threading.Thread(target=_write, args=(process.stdin, stdin), daemon=True).start()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            out_of_time = True
    for reader in readers:
        reader.join(_DRAIN_SECONDS)
    stdout, stderr = (bytes(reader.kept) for reader in readers) if capture else (b"", b"")
    return Ended(stdout, stderr, process.returncode, out_of_time, sum(reader.dropped for reader in readers))


class _Reader(threading.Thread):
    """Reads a pipe to its end and keeps the first bytes: a process whose pipe is full would wait."""

    def __init__(self, stream: IO[bytes]):
        super().__init__(daemon=True)
        self._stream = stream
        self.kept = bytearray()
        self.dropped = 0
        self.start()

    def run(self) -> None:
        with self._stream:
            while chunk := os.read(self._stream.fileno(), 1 << 16):
                room = OUTPUT_BYTES - len(self.kept)
                self.kept += chunk[:room]
                self.dropped += max(0, len(chunk) - room)


def _write(stream: IO[bytes], text: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), stream:  # it need not read everything
        stream.write(text)
