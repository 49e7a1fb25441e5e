"""Keeps the build cache within a limit: the folders that were not used for longest go first.

KERNEL_XRAY_CACHE_LIMIT is the limit in gigabytes, 4 by default, 0 for none. The time of last use is the modification
time of a folder's record. A folder in use is kept: one that a process is building in, and one that was used within the
last hour, since a process may be about to load from it.
"""

import fcntl
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kernel_xray.machine import cache

VARIABLE, DEFAULT = "KERNEL_XRAY_CACHE_LIMIT", 4.0  # gigabytes
_RECENT, _PERIOD = 3600, 600  # seconds


@dataclass(frozen=True)
class Entry:
    """A folder of the cache: its size in bytes and when it was last used, in seconds since the epoch."""

    folder: Path
    bytes: int
    used: float


def limit() -> int:
    """The limit in bytes, 0 for none. Raises CacheError if the variable is not such a number."""
    text = os.environ.get(VARIABLE, "")
    try:
        gigabytes = float(text or DEFAULT)
    except ValueError:
        gigabytes = -1
    if not 0 <= gigabytes < float("inf"):
        raise cache.CacheError(f"{VARIABLE} is {text!r}; give gigabytes such as 2.5, or 0 for no limit")
    return int(gigabytes * 1e9)


def entries(root: Path) -> list[Entry]:
    """The folders of builds in the cache, the one used most recently first."""
    found = []
    for lock in root.glob(f"*/{cache.LOCK}"):
        folder = lock.parent
        if not folder.is_symlink():
            with suppress(OSError):
                found.append(Entry(folder, cache.size(folder), _used(folder)))
    return sorted(found, key=lambda entry: -entry.used)


def mark_used(record: Path) -> None:
    """Sets the time of last use; in a read-only cache it stays as it is."""
    with suppress(OSError):
        os.utime(record)


def trim(root: Path, keep: Path) -> list[Path]:
    """Deletes what exceeds the limit; returns the deleted folders. `keep` is the folder of the build that just ended.

    Looks through the cache at most once in ten minutes, whichever process asks.
    """
    stamp = root / ".trimmed"
    most = limit()
    if not most or (stamp.exists() and _within(_PERIOD, stamp.stat().st_mtime)):
        return []
    stamp.touch()
    gone, total = [], 0
    for entry in entries(root):
        total += entry.bytes
        if total > most and not _within(_RECENT, entry.used) and entry.folder != keep and delete(entry.folder):
            gone.append(entry.folder)
            total -= entry.bytes
    return gone


def delete(folder: Path) -> bool:
    """Deletes a folder of the cache unless a process is building in it."""
    try:
        with open(folder / cache.LOCK, "a") as file, cache.lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB):
            (folder / cache.RECORD).unlink(missing_ok=True)  # first, so that no process takes the rest for finished
            shutil.rmtree(folder)
    except OSError:  # in use, or not ours
        return False
    return True


def _within(seconds: float, then: float) -> bool:
    """Whether `then` is that near to now: also before a clock that was set back shows that time again."""
    return abs(time.time() - then) < seconds


def _used(folder: Path) -> float:
    record = folder / cache.RECORD
    return (record if record.exists() else folder).stat().st_mtime
