"""The build cache: one folder for each distinct build, and a lock that a killed process cannot leave behind."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class CacheError(RuntimeError):
    """The cache folder cannot be written."""


def root() -> Path:
    """The cache folder: KERNEL_LADDER_CACHE, or `kernel_ladder` in the user's cache folder. Raises CacheError."""
    chosen = os.environ.get("KERNEL_LADDER_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(chosen) if chosen else Path(base) / "kernel_ladder"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CacheError(f"the build cache {folder} cannot be created ({error.strerror}); {_ADVICE}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CacheError(f"the build cache {folder} is not writable; {_ADVICE}")
    return folder


_ADVICE = "set KERNEL_LADDER_CACHE to a folder that you may write to"


def digest(*parts: object) -> str:
    """A key of 16 hexadecimal digits for `parts`: objects with distinct reprs."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks `folder` for this process; others wait. The operating system releases the lock if the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".in_use", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # PyTorch's own lock is a plain file: a killed build leaves it behind, and the next build waits for it forever.
        # While this process holds the folder, no build can be running, so the file is stale.
        (folder / "lock").unlink(missing_ok=True)
        yield


def built(folder: Path, key: str, build: Callable[[], Path]) -> Path:
    """The file in `folder` that build() makes for `key`: made now, or found because it was made before.

    Only one process at a time builds. A folder that the user named may hold a build with another key.
    """
    note = folder / "finished.json"
    with locked(folder):
        try:
            finished = json.loads(note.read_text())
            made = folder / finished["file"]
            if finished["key"] == key and made.is_file():
                return made
        except (OSError, ValueError, KeyError):
            pass  # not built, or not to the end
        made = build()
        note.write_text(json.dumps({"file": made.name, "key": key}))
        return made
