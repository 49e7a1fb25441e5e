"""Watches what an answer's processes use: memory, disk, number of processes. Ends them at a limit, and says why."""

import os
import threading
import time
from pathlib import Path

from kernel_xray.machine import cache, reaper

MEMORY, DISK = 6.0, 1.0  # GB; a compiler of a kernel needs half a GB of memory, its output a few MB
PROCESSES, THREADS = 200, 1000  # a build of one kernel has about ten processes, a run a thread for each core
_SECONDS = 0.2


class Watch:
    """Context manager: watches the processes below this one, but not its direct children, and a folder.

    `reason` is the limit that was exceeded, in words, or "".
    """

    def __init__(self, folder: Path, memory: float = MEMORY):
        self.reason, self._memory = "", memory
        self._folder, self._over = folder, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        interval = _SECONDS
        while not self._over.wait(interval):
            began = time.monotonic()
            if reason := self._exceeded():
                self.reason = self.reason or reason
                reaper.kill(_all_below)
            interval = max(_SECONDS, min(1.0, 50 * (time.monotonic() - began)))  # about 2% of a core

    def _exceeded(self) -> str:
        pids = _below()
        if len(pids) > PROCESSES:
            return f"it started more than {PROCESSES} processes"
        used = [_used(pid) for pid in pids]
        if sum(threads for _, threads in used) > THREADS:
            return f"it started more than {THREADS:,} threads"
        if sum(size for size, _ in used) > self._memory * reaper.GB:
            return f"it used more than {self._memory:g} GB of memory"
        if cache.size(self._folder) > DISK * reaper.GB:
            return f"it wrote more than {DISK:g} GB of files"
        return ""


def _below() -> list[int]:
    """The processes below the reapers that guard.py starts. One that is starting or ending may be missing."""
    waiting = [pid for child in _children(os.getpid()) for pid in _children(child)]
    found: list[int] = []
    while waiting and len(found) <= 2 * PROCESSES:
        found.append(waiting.pop())
        waiting += _children(found[-1])
    return found


def _all_below() -> list[int]:
    """The same, from the list of all processes of the machine: slow, but none is missing."""
    own = os.getpid()
    children = set(_children(own))
    return [pid for pid in reaper.descendants(own) if pid not in children]


def _children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [child for task in tasks for child in _children_of_thread(f"/proc/{pid}/task/{task}/children")]


def _children_of_thread(file: str) -> list[int]:
    try:
        with open(file) as children:
            return [int(child) for child in children.read().split()]
    except OSError:  # it has ended
        return []


def _used(pid: int) -> tuple[int, int]:
    """Bytes of memory that no file backs, shared memory included; and threads."""
    try:
        with open(f"/proc/{pid}/status", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file.read().splitlines())
        kilobytes = [int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem")]
        return 1024 * sum(kilobytes), int(fields["Threads"])
    except (OSError, KeyError):  # it has ended; of one that is ending, the kernel shows no sizes
        return 0, 0
