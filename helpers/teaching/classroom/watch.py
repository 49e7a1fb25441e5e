"""Watches what an answer's processes use: memory, disk, number of processes. Ends them at a limit, and says why."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from kernel_xray.machine import reaper

MEMORY, DISK = 6.0, 1.0  # GB; a compiler of a kernel needs half a GB of memory, its output a few MB
JUDGE = 4.0  # GB of this process, which holds one call's tensors and the results that it expects
FILES = 20_000  # a build leaves ten; in one folder, that many are counted in a moment
PATH = 3000  # characters of a folder's path; Linux takes 4,095
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
        if _used(os.getpid())[0] > JUDGE * reaper.GB:
            return f"its messages fill more than {JUDGE:g} GB of the judge's memory"
        return _written(self._folder)


def _written(folder: Path) -> str:
    """The limit that the files in a folder exceed, in words, or ""."""
    size, count, waiting = 0, 0, [str(folder)]
    while waiting:
        if len(place := waiting.pop()) > PATH:
            return "it made folders in folders, deeper than a path can name"
        with suppress(OSError), os.scandir(place) as entries:  # it may just have been deleted
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                size += entry.stat(follow_symlinks=False).st_size
                if (count := count + 1) > FILES:
                    return f"it made more than {FILES:,} files"
    return f"it wrote more than {DISK:g} GB of files" if size > DISK * reaper.GB else ""


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
