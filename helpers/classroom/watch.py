"""Watches what an answer's processes use: memory, disk, number of processes. Ends them at a limit, and says why."""

import os
import threading
from pathlib import Path

from helpers.machine import cache, reaper

MEMORY, DISK = 6 * reaper.GB, 1 * reaper.GB  # a compiler of a kernel needs half a GB of memory, its output a few MB
PROCESSES = 200  # a build of one kernel has about ten
_SECONDS = 0.2
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Context manager: watches the processes below this one, but not its direct children, and a folder.

    `reason` is the limit that was exceeded, in words, or "".
    """

    def __init__(self, folder: Path):
        self.reason = ""
        self._folder, self._over = folder, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_SECONDS):
            if reason := self._exceeded():
                self.reason = self.reason or reason
                reaper.kill(_below)

    def _exceeded(self) -> str:
        pids = _below()
        if len(pids) > PROCESSES:
            return f"it started more than {PROCESSES} processes"
        if (used := sum(map(_resident, pids))) > MEMORY:
            return f"it used {used / reaper.GB:.1f} GB of memory, and the limit is {MEMORY / reaper.GB:g} GB"
        if cache.size(self._folder) > DISK:
            return f"it wrote more than {DISK / reaper.GB:g} GB of files"
        return ""


def _below() -> list[int]:
    """The processes below the reapers that guard.py starts."""
    own = os.getpid()
    children = set(_children(own))
    return [pid for pid in reaper.descendants(own) if pid not in children]


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in text for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _resident(pid: int) -> int:
    """Bytes of memory of its own: what it shares with the worker that it was forked from does not count."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE
